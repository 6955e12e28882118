// Messages of a group, and how they move through the rings that two ranks share.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/gpu_model/libraries/nccl_shared.hpp"
#include "tests/gpu_model/memory/address_space.hpp"

namespace gpu_model {

std::size_t bytes_of(ncclDataType_t type);  // 0: there is no such type

struct Message {
  bool outgoing = false;
  int peer = 0;
  Address address = 0;
  std::size_t bytes = 0;
  ncclDataType_t type = ncclChar;

  bool begun = false, done = false;
  std::size_t moved = 0;
  std::size_t sent = 0;        // of an incoming one: what the peer says that it sends
  std::uint64_t ring_end = 0;  // of an outgoing one: the ring's count behind it
};

struct Group {
  std::vector<Message> messages;
  unsigned number = 0;
  // Whether a message is done only when its receiver has taken it. NCCL may buffer a message or not.
  bool rendezvous = false;
  bool noted = false;  // its memory has been checked
  bool ended = false;
};

// Moves on what can be moved between `rank` and its peers; true: all is done. Messages between two ranks keep their
// order. Reports faults of kind "NCCL message".
bool move_on(Group& group, const SharedBoard& board, int rank);
// What is undefined after an abort: the rest of messages that have not come whole.
void poison_rest(Group& group);

// Notes all that a group will read and write; false where a buffer may not be used. Reports two that overlap.
bool note_buffers(const Group& group, WorkNumber work);

}  // namespace gpu_model
