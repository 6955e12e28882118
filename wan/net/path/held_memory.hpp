// Memory that a peer can make this process hold: the promise to each of its paths for data that come before their
// receive is posted, and copies of short messages that it does not acknowledge. Counted for each peer (its key or
// certificate; its address if paths are insecure) over all of its paths, so that no peer uses up the others' memory.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace maki::wan {

struct HeldMemoryLimits {
  std::uint64_t one_peer = std::uint64_t{2} << 30;  // an eighth is not promised: for copies and gaps
  std::uint64_t all = std::uint64_t{4} << 30;       // of all peers; beyond it each may still have an equal share
};

// Promised to each path that wants as much.
inline constexpr std::uint64_t kLeastPromise = 4 << 20;

// Memory of the ranges between gaps in what came: bytes of a range, bytes charged at a time, and bytes that are not
// charged, so that a path whose receives are all posted does not depend on what others have filled.
inline constexpr std::uint64_t kRangeCost = 64, kRangeStep = 4 << 10, kOwnRanges = 64 << 10;

constexpr std::uint64_t beyond_own(std::uint64_t bytes) { return bytes > kOwnRanges ? bytes - kOwnRanges : 0; }

class HeldMemory {
 public:
  static std::shared_ptr<HeldMemory> of(const std::string& peer);  // one object for each peer, while anyone holds it
  static void set_limits(const HeldMemoryLimits& limits);          // of the process, from now on
  static void make_room(std::uint64_t unmatched_limit);  // raises the limits, so that a single path may have all of it
  ~HeldMemory();
  HeldMemory(const HeldMemory&) = delete;

  bool take(std::uint64_t bytes);  // false, with nothing taken, above the limits
  void give_back(std::uint64_t bytes);
  std::uint64_t bytes() const { return bytes_; }
  static std::uint64_t peers();  // number of objects alive
  // The promise for one more path that wants `wanted` bytes: at most half of what is left when each of the `others`
  // still to come has the least. 0 if there is not even that.
  std::uint64_t room_for_path(std::uint64_t wanted, std::uint64_t others) const;

 private:
  HeldMemory();
  std::atomic<std::uint64_t> bytes_{0};
};

// Bytes taken from a HeldMemory, given back on destruction.
class Holding {
 public:
  Holding() = default;
  Holding(Holding&& other) noexcept { swap(other); }
  Holding& operator=(Holding&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Holding() {
    if (memory_) memory_->give_back(bytes_);
  }

  // Grows to `bytes` in all, in multiples of `step`. False above the limits; true without a `memory`.
  bool grow_to(std::uint64_t bytes, const std::shared_ptr<HeldMemory>& memory, std::uint64_t step = 1);
  void shrink_to(std::uint64_t bytes);

 private:
  void swap(Holding& other) {
    memory_.swap(other.memory_);
    std::swap(bytes_, other.bytes_);
  }
  std::shared_ptr<HeldMemory> memory_;
  std::uint64_t bytes_ = 0;
};

}  // namespace maki::wan
