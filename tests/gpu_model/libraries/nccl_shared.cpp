#include "tests/gpu_model/libraries/nccl_shared.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

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

bool process_runs(int process) {
  if (kill(process, 0) != 0 && errno == ESRCH) return false;
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos) return kill(process, 0) == 0 || errno != ESRCH;
  const char state = text[name_end + 2];
  return state != 'Z' && state != 'X';
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

}  // namespace gpu_model
