// Memory that a peer may make this process hold unasked: what each of its paths was promised for data that come before
// their receive is posted, and copies of short messages that it does not acknowledge. Counted for each peer (its key or
// certificate; its address where paths are insecure) over all of its paths, so that none uses up what the others need.
// Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace maki::wan {

struct HeldMemoryLimits {
  std::uint64_t one_peer = std::uint64_t{2} << 30;  // an eighth of it is not promised: for copies and gaps
  std::uint64_t all = std::uint64_t{4} << 30;       // of all peers; beyond it each may still have an equal part of this
};

// Promised to each path, where it wants so much.
inline constexpr std::uint64_t kLeastPromise = 4 << 20;

// Bytes of a range of numbers, and counted at once; so many are every path's own, so that one whose receives are all
// posted needs nothing of what others may have filled.
inline constexpr std::uint64_t kRangeCost = 64, kRangeStep = 4 << 10, kOwnRanges = 64 << 10;

constexpr std::uint64_t beyond_own(std::uint64_t bytes) { return bytes > kOwnRanges ? bytes - kOwnRanges : 0; }

class HeldMemory {
 public:
  static std::shared_ptr<HeldMemory> of(const std::string& peer);  // the same for all who ask while anybody has it
  static void set_limits(const HeldMemoryLimits& limits);          // of the process, from now on
  static void make_room(std::uint64_t unmatched_limit);  // raises them, so that a path that is alone may have all of it
  ~HeldMemory();
  HeldMemory(const HeldMemory&) = delete;

  bool take(std::uint64_t bytes);  // false, and nothing taken, where that would be too much
  void give_back(std::uint64_t bytes);
  std::uint64_t bytes() const { return bytes_; }
  static std::uint64_t peers();  // that anybody has
  // What one more path may be promised of the `wanted` bytes: no more than half of what is left when each of the
  // `others` that may come has the least. 0 where there is not even that.
  std::uint64_t room_for_path(std::uint64_t wanted, std::uint64_t others) const;

 private:
  HeldMemory();
  std::atomic<std::uint64_t> bytes_{0};
};

// A part of it, given back at its end.
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

  // So much in all, or a little more: it grows in steps. False where that would be too much; true without a `memory`.
  bool grow_to(std::uint64_t bytes, const std::shared_ptr<HeldMemory>& memory, std::uint64_t step = 1);
  void shrink_to(std::uint64_t bytes);
  std::uint64_t bytes() const { return bytes_; }

 private:
  void swap(Holding& other) {
    memory_.swap(other.memory_);
    std::swap(bytes_, other.bytes_);
  }
  std::shared_ptr<HeldMemory> memory_;
  std::uint64_t bytes_ = 0;
};

}  // namespace maki::wan
