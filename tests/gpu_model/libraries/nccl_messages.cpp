#include "tests/gpu_model/libraries/nccl_messages.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "tests/gpu_model/memory/shadow.hpp"
#include "tests/gpu_model/report.hpp"

namespace gpu_model {

namespace {

constexpr char kMagic[16] = "modelled GPUs";
constexpr std::size_t kPage = 4096;

struct IdContent {
  char magic[16];
  std::uint64_t token;
  int process, file;
};
static_assert(sizeof(IdContent) <= NCCL_UNIQUE_ID_BYTES);

IdContent content(const ncclUniqueId& id) {
  IdContent content;
  std::memcpy(&content, id.internal, sizeof content);
  return content;
}

std::size_t board_bytes() { return (sizeof(Board) + kPage - 1) / kPage * kPage; }

// 256 KiB while all rings of a machine's ranks are no more than 64 MiB; at least 16 KiB.
std::size_t ring_bytes(int ranks) {
  const std::size_t pairs = static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks);
  return std::clamp((std::size_t{64} << 20) / pairs / kPage * kPage, std::size_t{16} << 10, std::size_t{256} << 10);
}

// Whether this process still holds the file that the id was made with.
bool holds(const IdContent& id) {
  if (id.process != getpid()) return false;
  std::uint64_t token = 0;
  return pread(id.file, &token, sizeof token, offsetof(Board, token)) == sizeof token && token == id.token;
}

}  // namespace

ncclResult_t make_unique_id(ncclUniqueId& id) {
  IdContent made{};
  std::memcpy(made.magic, kMagic, sizeof made.magic);
  if (getrandom(&made.token, sizeof made.token, 0) != sizeof made.token) return ncclSystemError;
  made.process = getpid();
  made.file = memfd_create("nccl", MFD_CLOEXEC);
  if (made.file < 0) return ncclSystemError;
  const off_t at = offsetof(Board, token);
  if (ftruncate(made.file, static_cast<off_t>(board_bytes())) != 0 ||
      pwrite(made.file, &made.token, sizeof made.token, at) != sizeof made.token) {
    close(made.file);
    return ncclSystemError;
  }
  id = {};
  std::memcpy(id.internal, &made, sizeof made);
  return ncclSuccess;
}

void RingEnd::put(const char* from, std::size_t bytes) {
  const std::uint64_t written = ring_->written.load(std::memory_order_relaxed);
  const std::size_t begin = written % bytes_, first = std::min(bytes, bytes_ - begin);
  std::memcpy(data_ + begin, from, first);
  std::memcpy(data_, from + first, bytes - first);
  ring_->written.store(written + bytes, std::memory_order_release);
}

void RingEnd::take(char* to, std::size_t bytes) {
  const std::uint64_t read = ring_->read.load(std::memory_order_relaxed);
  const std::size_t begin = read % bytes_, first = std::min(bytes, bytes_ - begin);
  if (to) {
    std::memcpy(to, data_ + begin, first);
    std::memcpy(to + first, data_, bytes - first);
  }
  ring_->read.store(read + bytes, std::memory_order_release);
}

SharedBoard::~SharedBoard() {
  if (!board_) return;
  close_id();
  munmap(board_, bytes_);
}

ncclResult_t SharedBoard::enter(const ncclUniqueId& id, int ranks, int rank, const char* bus_id, std::string& error) {
  const IdContent made = content(id);
  if (std::memcmp(made.magic, kMagic, sizeof kMagic) != 0) {
    error = "the unique id was not made by ncclGetUniqueId";
    return ncclInvalidArgument;
  }
  const std::string path = "/proc/" + std::to_string(made.process) + "/fd/" + std::to_string(made.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const std::size_t rings = ring_bytes(ranks);
  const std::size_t bytes = board_bytes() + static_cast<std::size_t>(ranks * ranks) * (sizeof(Ring) + rings);
  void* memory = MAP_FAILED;
  struct stat status {};
  // Files only grow here: ranks that disagree on their number must not cut each other's memory off.
  if (file >= 0 && fstat(file, &status) == 0 &&
      (status.st_size >= static_cast<off_t>(bytes) || ftruncate(file, static_cast<off_t>(bytes)) == 0)) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (file >= 0) close(file);
  if (memory == MAP_FAILED || static_cast<Board*>(memory)->token != made.token) {
    if (memory != MAP_FAILED) munmap(memory, bytes);
    error = "the process that made the unique id is gone, or on another machine";
    return ncclSystemError;
  }
  board_ = static_cast<Board*>(memory);
  bytes_ = bytes, ring_bytes_ = rings, ranks_ = ranks, id_ = id;
  int others = 0;
  if (!board_->ranks.compare_exchange_strong(others, ranks) && others != ranks) {
    error = "ranks disagree on their number: " + std::to_string(others) + " and " + std::to_string(ranks);
    return ncclInvalidArgument;
  }
  int nobody = 0;
  if (!entry(rank).process.compare_exchange_strong(nobody, getpid())) {
    error = "there is a rank " + std::to_string(rank) + " already";
    return ncclInvalidUsage;
  }
  std::strncpy(entry(rank).bus_id, bus_id, sizeof entry(rank).bus_id - 1);
  entry(rank).state = RankState::kJoined;
  entered_ = true;
  return ncclSuccess;
}

RingEnd SharedBoard::ring(int from, int to) const {
  const auto number = static_cast<std::size_t>(from * ranks_ + to);
  char* const begin = reinterpret_cast<char*>(board_) + board_bytes() + number * (sizeof(Ring) + ring_bytes_);
  return {reinterpret_cast<Ring*>(begin), ring_bytes_};
}

void SharedBoard::close_id() const {
  const IdContent made = content(id_);
  if (holds(made)) close(made.file);
}

namespace {

// Each moves as much as there is room for or has come; true: something moved. The number of its bytes goes before each
// message.
bool move_out(Message& message, RingEnd ring, bool rendezvous) {
  bool moved = false;
  if (!message.begun) {
    if (ring.room() < sizeof message.bytes) return false;
    ring.put(reinterpret_cast<const char*>(&message.bytes), sizeof message.bytes);
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
    if (ring.filled() < sizeof message.sent) return false;
    ring.take(reinterpret_cast<char*>(&message.sent), sizeof message.sent);
    message.begun = moved = true;
    if (message.sent != message.bytes) {
      report({"NCCL message", "from rank " + std::to_string(message.peer) + " to " + std::to_string(rank),
              std::to_string(message.sent) + " bytes are sent, " + std::to_string(message.bytes) + " received"});
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

bool move_on(MessageGroup& group, const SharedBoard& board, int rank) {
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

void poison_rest(MessageGroup& group) {
  for (Message& message : group.messages) {
    if (message.outgoing || message.done || message.moved >= message.bytes) continue;
    std::memset(view(message.address) + message.moved, kPoison, message.bytes - message.moved);
  }
}

bool note_buffers(const MessageGroup& group, WorkNumber work) {
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
