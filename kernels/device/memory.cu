#include "kernels/device/memory.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>

#include "kernels/device/block_pool.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/error.hpp"

#if defined(__CUDACC__)
#include "kernels/device/launch.cuh"
#else
#include <sys/mman.h>
#endif

namespace maki {
namespace {

void* system_allocate(std::size_t bytes) {
#if defined(__CUDACC__)
  void* block = nullptr;
  const cudaError_t code = cudaMalloc(&block, bytes);
  if (succeeded(code)) return block;
  if (code != cudaErrorMemoryAllocation) check_cuda(code, "allocating memory on the GPU");  // an earlier error
  return nullptr;
#else
  // Large arrays on large pages: lists and meshes are read at random, where address translation costs most.
  constexpr std::size_t large_page = std::size_t{1} << 21;
  if (bytes < 2 * large_page) return std::aligned_alloc(4096, bytes);
  void* block = std::aligned_alloc(large_page, (bytes + large_page - 1) / large_page * large_page);
  if (block) madvise(block, bytes, MADV_HUGEPAGE);  // only a hint: without it the run is slower
  return block;
#endif
}

void system_release(void* block) {
#if defined(__CUDACC__)
  succeeded(cudaFree(block));
#else
  std::free(block);
#endif
}

BlockPool& pool() {
  static auto* instance = new BlockPool({system_allocate, system_release});  // buffers may outlive static destruction
  return *instance;
}

// Counters that any thread may increase.
struct Transfers {
  std::atomic<std::uint64_t> to_device{0}, to_host{0}, waits{0};
};

Transfers& transfers() {
  static Transfers counters;
  return counters;
}

// The lowest number that no living thread has.
class ThreadNumber {
 public:
  ThreadNumber() {
    const std::lock_guard lock(mutex());
    while (taken().contains(number_)) ++number_;
    taken().insert(number_);
  }
  ~ThreadNumber() {
    const std::lock_guard lock(mutex());
    taken().erase(number_);
  }
  int value() const { return number_; }

 private:
  static std::mutex& mutex() {
    static auto* instance = new std::mutex;
    return *instance;
  }
  static std::set<int>& taken() {
    static auto* instance = new std::set<int>;
    return *instance;
  }
  int number_ = 0;
};

thread_local const ThreadNumber thread_number;
thread_local int current_lane = 0;

// The one of the calling thread.
int selected_device() {
  int device = 0;
#if defined(__CUDACC__)
  succeeded(cudaGetDevice(&device));
#endif
  return device;
}

enum class Way { kToDevice, kToHost, kOnDevice };

void queue_copy(const Stream& stream, void* to, const void* from, std::size_t bytes, Way way) {
  if (bytes == 0) return;
#if defined(__CUDACC__)
  constexpr cudaMemcpyKind kKinds[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice};
  constexpr const char* kNames[] = {"copy to the device", "copy to the host", "copy on the device"};
  const auto i = static_cast<int>(way);
  check_cuda(cudaMemcpyAsync(to, from, bytes, kKinds[i], native(stream)), kNames[i]);
#else
  (void)stream, (void)way;
  std::memcpy(to, from, bytes);
#endif
}

// Small copies (results of kernels, tables of the host) go through page-locked memory: copies from or to pageable
// memory make the host wait, or are done in two steps.
constexpr std::size_t kSmallCopy = 4096;

#if defined(__CUDACC__)
thread_local PinnedBuffer small_copies;

// Slots of page-locked memory, used in turn: the caller's memory may be freed at once, and nobody waits. Of one device.
class SmallUploads {
 public:
  // False where the next slot has not been read yet.
  bool queue(const Stream& stream, void* to, const void* from, std::size_t bytes) {
    memory_.reserve(kSlots * kSmallCopy);
    const std::size_t slot = next_++ % kSlots;
    if (read_[slot] && !read_[slot]->reached()) return false;
    if (!read_[slot]) read_[slot].emplace();
    void* const place = memory_.data() + slot * kSmallCopy;
    std::memcpy(place, from, bytes);
    queue_copy_to_device(stream, to, place, bytes);
    read_[slot]->set(stream);
    return true;
  }

 private:
  static constexpr std::size_t kSlots = 64;
  PinnedBuffer memory_;
  std::array<std::optional<StreamMark>, kSlots> read_;
  std::size_t next_ = 0;
};
thread_local std::map<int, SmallUploads> small_uploads;  // by device
#endif

namespace fs = std::filesystem;

// The number after `name` in a file of "name value" lines; with an empty name, the only number of a file.
std::optional<std::size_t> number_in(const fs::path& path, const std::string& name = "") {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    if (!name.empty() && (!(words >> word) || word != name)) continue;
    std::size_t value = 0;
    if (words >> value) return value;
    if (name.empty()) return std::nullopt;  // "max"
  }
  return std::nullopt;
}

// Memory that a control group leaves. Pages of files count as used, but are reclaimable.
std::optional<std::size_t> left_in_group(const fs::path& group, const char* limit, const char* usage,
                                         const char* file_pages) {
  const auto most = number_in(group / limit), used = number_in(group / usage);
  if (!most || !used || *most > std::numeric_limits<std::size_t>::max() / 4) return std::nullopt;
  const std::size_t held = *used - std::min(*used, number_in(group / "memory.stat", file_pages).value_or(0));
  return *most - std::min(*most, held);
}

// Processors whose time a control group may take. Its file of the second version: "150000 100000" or "max 100000".
std::optional<double> quota_of_group(const fs::path& group, bool second_version) {
  double time = 0, period = 0;
  if (second_version)
    std::ifstream(group / "cpu.max") >> time >> period;
  else if (std::ifstream(group / "cpu.cfs_quota_us") >> time)
    std::ifstream(group / "cpu.cfs_period_us") >> period;
  if (time <= 0 || period <= 0) return std::nullopt;  // -1: no limit
  return time / period;
}

// each(group, second_version) for this process's control group of a controller and all groups above it.
template <class Each>
void for_control_groups(const std::string& root, const std::string& controller, const Each& each) {
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/path", or "4:cpu,cpuacct:/path" in the first version
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool second_version = controllers.empty();
    if (!second_version && ("," + controllers + ",").find("," + controller + ",") == std::string::npos) continue;
    const fs::path mount = root + "/sys/fs/cgroup" + (second_version ? "" : "/" + controller);
    fs::path group = mount / fs::path(line.substr(second + 1)).relative_path();
    for (; group != mount && group.has_relative_path(); group = group.parent_path()) each(group, second_version);
    each(mount, second_version);
  }
}

}  // namespace

PoolLane::PoolLane(int lane) : outer_(current_lane) { current_lane = lane; }
PoolLane::~PoolLane() { current_lane = outer_; }

void* pool_allocate(const char* name, std::size_t bytes) {
  return pool().allocate(name, bytes, thread_number.value() * kLanes + current_lane, selected_device());
}
void pool_release(void* block) noexcept { pool().release(block); }
void pool_set_extent(void* block, std::size_t bytes) noexcept { pool().set_extent(block, bytes); }
void pool_watch(const std::vector<std::vector<std::string>>& left_out) { pool().watch(left_out); }
void pool_set_limit(std::size_t bytes) { pool().set_limit(bytes, selected_device()); }
void pool_trim() { pool().trim(); }
PoolReport pool_report() { return pool().report(selected_device()); }

PinnedBuffer::~PinnedBuffer() { release(); }

void PinnedBuffer::release() noexcept {
#if defined(__CUDACC__)
  if (data_) succeeded(cudaFreeHost(data_));  // for nothing the call would start CUDA, on any thread's first GPU
#else
  std::free(data_);
#endif
  data_ = nullptr;
  capacity_ = 0;
}

void PinnedBuffer::reserve(std::size_t bytes) {
  if (bytes <= capacity_) return;
  release();
#if defined(__CUDACC__)
  void* block = nullptr;
  const cudaError_t code = cudaMallocHost(&block, bytes);
  if (!succeeded(code) && code == cudaErrorMemoryAllocation)
    throw DeviceError("no page-locked host memory for messages", std::to_string(bytes >> 10) + " KiB wanted",
                      "the memory of the host, or the job's limit on it, is short: use more machines");
  check_cuda(code, "page-locked host memory for messages");
  data_ = static_cast<char*>(block);
#else
  data_ = static_cast<char*>(std::malloc(bytes));
  if (data_ == nullptr) throw DeviceError("out of memory for messages", std::to_string(bytes) + " bytes at once");
#endif
  capacity_ = bytes;
}

void copy_to_device(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
#if defined(__CUDACC__)
  if (bytes <= kSmallCopy && small_uploads[selected_device()].queue(stream, to, from, bytes)) return;
  ++transfers().waits;
  // For pageable memory the driver itself may wait for the stream; here the wait notices lost ranks.
  stream.synchronize();
#else
  if (bytes > kSmallCopy) ++transfers().waits;
#endif
  queue_copy_to_device(stream, to, from, bytes);
  stream.synchronize();  // `from` is pageable memory of the caller
}

void copy_to_host(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  ++transfers().waits;
#if defined(__CUDACC__)
  if (bytes <= kSmallCopy) {
    small_copies.reserve(kSmallCopy);
    queue_copy_to_host(stream, small_copies.data(), from, bytes);
    stream.synchronize();
    std::memcpy(to, small_copies.data(), bytes);
    return;
  }
  stream.synchronize();  // as in copy_to_device()
#endif
  queue_copy_to_host(stream, to, from, bytes);
  stream.synchronize();
}

void queue_copy_to_device(const Stream& stream, void* to, const void* pinned, std::size_t bytes) {
  transfers().to_device += bytes;
  queue_copy(stream, to, pinned, bytes, Way::kToDevice);
}

void queue_copy_to_host(const Stream& stream, void* pinned, const void* from, std::size_t bytes) {
  transfers().to_host += bytes;
  queue_copy(stream, pinned, from, bytes, Way::kToHost);
}

void copy_on_device(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  queue_copy(stream, to, from, bytes, Way::kOnDevice);
}

void fill_zero(const Stream& stream, void* to, std::size_t bytes) {
  if (bytes == 0) return;
#if defined(__CUDACC__)
  check_cuda(cudaMemsetAsync(to, 0, bytes, native(stream)), "fill with zeros");
#else
  (void)stream;
  constexpr std::size_t chunk = std::size_t{1} << 20;
  auto* base = static_cast<char*>(to);
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < bytes; i += chunk) std::memset(base + i, 0, std::min(chunk, bytes - i));
#endif
}

TransferCounters transfer_counters() {
  const Transfers& t = transfers();
  return {t.to_device, t.to_host, t.waits};
}

void reset_transfer_counters() {
  Transfers& t = transfers();
  t.to_device = t.to_host = t.waits = 0;
}

void count_to_host(std::size_t bytes) {
  transfers().to_host += bytes;
  ++transfers().waits;
}

std::size_t host_memory_available(const std::string& root) {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  if (const auto kib = number_in(root + "/proc/meminfo", "MemAvailable:")) least = *kib * 1024;
  for_control_groups(root, "memory", [&least](const fs::path& group, bool second_version) {
    const auto left =
        second_version ? left_in_group(group, "memory.max", "memory.current", "inactive_file")
                       : left_in_group(group, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file");
    if (left) least = std::min(least, *left);
  });
  return least == std::numeric_limits<std::size_t>::max() ? 0 : least;
}

double processor_quota(const std::string& root) {
  double least = std::numeric_limits<double>::infinity();
  for_control_groups(root, "cpu", [&least](const fs::path& group, bool second_version) {
    if (const auto quota = quota_of_group(group, second_version)) least = std::min(least, *quota);
  });
  return least;
}

}  // namespace maki
