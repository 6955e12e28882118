// Memory that the ranks of a communicator share: who is there, and a ring of bytes for each pair of ranks and
// direction.
//
// It is an anonymous file (memfd_create), which others open by /proc while the process that made the unique id holds
// it: it has no name, so nothing is left behind, however the processes end.
#pragma once

#include <nccl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/gpu_model/memory/address_space.hpp"

namespace gpu_model {

constexpr int kMostRanks = 256;

enum class RankState : int { kAbsent, kJoined, kFinalized, kLeft, kAborted };

struct RankEntry {
  std::atomic<int> process{0};  // 0: nobody is this rank yet
  std::atomic<RankState> state{RankState::kAbsent};
  char bus_id[32] = "";
};

struct Board {
  std::uint64_t token = 0;  // that of the unique id
  std::atomic<int> ranks{0};
  RankEntry entries[kMostRanks];
};

// One sender, one receiver. The counts of bytes only grow.
struct Ring {
  alignas(64) std::atomic<std::uint64_t> written{0};
  alignas(64) std::atomic<std::uint64_t> read{0};
};

class RingEnd {
 public:
  RingEnd(Ring* ring, std::size_t bytes) : ring_(ring), data_(reinterpret_cast<char*>(ring + 1)), bytes_(bytes) {}
  std::uint64_t written() const { return ring_->written.load(std::memory_order_acquire); }
  std::uint64_t read() const { return ring_->read.load(std::memory_order_acquire); }
  std::size_t room() const { return bytes_ - static_cast<std::size_t>(written() - read()); }
  std::size_t filled() const { return static_cast<std::size_t>(written() - read()); }
  void put(const char* from, std::size_t bytes);  // at most room()
  void take(char* to, std::size_t bytes);         // at most filled(); nullptr: they are dropped

 private:
  Ring* ring_;
  char* data_;
  std::size_t bytes_;
};

class SharedBoard {
 public:
  SharedBoard() = default;
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;
  ~SharedBoard();

  // Enters this rank. Anything but ncclSuccess leaves `error` with a reason.
  ncclResult_t enter(const ncclUniqueId& id, int ranks, int rank, const char* bus_id, std::string& error);
  bool entered() const { return entered_; }
  RankEntry& entry(int rank) const { return board_->entries[rank]; }
  RingEnd ring(int from, int to) const;
  // The process that made the id holds the memory open for others; from now on it need not.
  void close_id() const;

 private:
  Board* board_ = nullptr;
  std::size_t bytes_ = 0, ring_bytes_ = 0;
  int ranks_ = 0;
  bool entered_ = false;
  ncclUniqueId id_{};
};

ncclResult_t make_unique_id(ncclUniqueId& id);

// Messages of a group, and how they move through the rings that two ranks share.

struct Message {
  bool outgoing = false;
  int peer = 0;
  Address address = 0;
  std::size_t bytes = 0;

  bool begun = false, done = false;
  std::size_t moved = 0;
  std::size_t sent = 0;        // of an incoming one: what the peer says that it sends
  std::uint64_t ring_end = 0;  // of an outgoing one: the ring's count behind it
};

struct MessageGroup {
  std::vector<Message> messages;
  unsigned number = 0;
  // Whether a message is done only when its receiver has taken it. NCCL may buffer a message or not.
  bool rendezvous = false;
  bool noted = false;  // its memory has been checked
  bool ended = false;
};

// Moves on what can be moved between `rank` and its peers; true: all is done. Messages between two ranks keep their
// order. Reports faults of kind "NCCL message".
bool move_on(MessageGroup& group, const SharedBoard& board, int rank);
// What is undefined after an abort: the rest of messages that have not come whole.
void poison_rest(MessageGroup& group);

// Notes all that a group will read and write; false where a buffer may not be used. Reports two that overlap.
bool note_buffers(const MessageGroup& group, WorkNumber work);

}  // namespace gpu_model
