#include "tests/gpu_model/libraries/nccl_messages.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "tests/gpu_model/memory/shadow.hpp"
#include "tests/gpu_model/report.hpp"

namespace gpu_model {
namespace {

constexpr int kPoison = 0xff;

// Goes before each message.
struct Header {
  std::uint64_t bytes;
  std::uint64_t type;
};

// Each moves as much as there is room for or has come; true: something moved.
bool move_out(Message& message, RingEnd ring, bool rendezvous) {
  bool moved = false;
  if (!message.begun) {
    if (ring.room() < sizeof(Header)) return false;
    const Header header{message.bytes, static_cast<std::uint64_t>(message.type)};
    ring.put(reinterpret_cast<const char*>(&header), sizeof header);
    message.begun = moved = true;
  }
  if (const std::size_t n = std::min(ring.room(), message.bytes - message.moved); n > 0) {
    ring.put(view(message.address) + message.moved, n);
    message.moved += n;
    moved = true;
  }
  if (message.moved == message.bytes) {
    if (message.ring_end == 0) message.ring_end = ring.written();
    message.done = !rendezvous || ring.read() >= message.ring_end;
  }
  return moved || message.done;
}

bool move_in(Message& message, RingEnd ring, int rank) {
  bool moved = false;
  if (!message.begun) {
    if (ring.filled() < sizeof(Header)) return false;
    Header header;
    ring.take(reinterpret_cast<char*>(&header), sizeof header);
    message.begun = moved = true;
    message.sent = header.bytes;
    if (header.bytes != message.bytes || header.type != static_cast<std::uint64_t>(message.type)) {
      report({"NCCL message", "from rank " + std::to_string(message.peer) + " to " + std::to_string(rank),
              std::to_string(header.bytes) + " bytes of type " + std::to_string(header.type) + " are sent, " +
                  std::to_string(message.bytes) + " of type " + std::to_string(message.type) + " received"});
    }
  }
  if (const std::size_t n = std::min(ring.filled(), message.sent - message.moved); n > 0) {
    const std::size_t fits = std::min(n, message.bytes - std::min(message.moved, message.bytes));
    if (fits > 0) ring.take(view(message.address) + message.moved, fits);
    if (n > fits) ring.take(nullptr, n - fits);
    message.moved += n;
    moved = true;
  }
  if (message.moved == message.sent) {
    if (message.sent < message.bytes)
      std::memset(view(message.address) + message.sent, kPoison, message.bytes - message.sent);
    message.done = true;
  }
  return moved || message.done;
}

}  // namespace

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 0;
  }
}

bool move_on(Group& group, const SharedBoard& board, int rank) {
  for (bool moved = true; moved;) {
    moved = false;
    std::set<std::pair<bool, int>> busy;  // directions and peers whose turn another message has
    for (Message& message : group.messages) {
      if (message.done || !busy.insert({message.outgoing, message.peer}).second) continue;
      moved |= message.outgoing ? move_out(message, board.ring(rank, message.peer), group.rendezvous)
                                : move_in(message, board.ring(message.peer, rank), rank);
    }
  }
  return std::all_of(group.messages.begin(), group.messages.end(), [](const Message& m) { return m.done; });
}

void poison_rest(Group& group) {
  for (Message& message : group.messages) {
    if (message.outgoing || message.done || message.moved >= message.bytes) continue;
    std::memset(view(message.address) + message.moved, kPoison, message.bytes - message.moved);
  }
}

bool note_buffers(const Group& group, WorkNumber work) {
  std::vector<const Message*> order;
  for (const Message& message : group.messages) {
    if (message.bytes == 0) continue;
    const bool usable = message.outgoing ? note_read(work, message.address, message.bytes, "ncclSend")
                                         : note_write(work, message.address, message.bytes, "ncclRecv");
    if (!usable) return false;
    order.push_back(&message);
  }
  std::sort(order.begin(), order.end(), [](const Message* a, const Message* b) { return a->address < b->address; });
  const Message *sent = nullptr, *received = nullptr;  // those that reach furthest so far
  const auto reaches = [](const Message* before, const Message* message) {
    return before && before->address + before->bytes > message->address;
  };
  for (const Message* message : order) {
    if (reaches(received, message) || (!message->outgoing && reaches(sent, message))) {
      report({"NCCL message", message->outgoing ? "ncclSend" : "ncclRecv",
              "two buffers of a group overlap, and one of them is received into"});
    }
    const Message*& last = message->outgoing ? sent : received;
    if (!last || last->address + last->bytes < message->address + message->bytes) last = message;
  }
  return true;
}

}  // namespace gpu_model
