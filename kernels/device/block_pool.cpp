#include "kernels/device/block_pool.hpp"

#include <algorithm>

#include "kernels/error.hpp"

namespace maki {
namespace {

constexpr std::size_t kKiB = 1024, kMiB = kKiB * 1024;
constexpr std::size_t kSmall = kMiB, kSmallSegment = 4 * kMiB;
constexpr std::size_t kLarge = 8 * kMiB, kSharedSegment = 32 * kMiB;  // larger requests get segments of their own
constexpr std::size_t kSegmentGrain = 2 * kMiB;
constexpr std::size_t kSmallRest = 512, kLargeRest = 64 * kKiB;  // smaller remainders are not split off
constexpr std::size_t kGuard = 64;  // bytes after each block's extent, so that an overrun by one element is noticed

std::size_t round_up(std::size_t bytes, std::size_t grain) { return (bytes + grain - 1) / grain * grain; }

std::size_t block_bytes(std::size_t bytes) { return round_up(bytes + kGuard, bytes < kSmall ? 512 : 4 * kKiB); }

std::string mebibytes(std::size_t bytes) { return std::to_string(bytes / kMiB) + " MiB"; }

}  // namespace

bool BlockPool::Watch::counts(std::string_view name) const {
  return std::none_of(left_out.begin(), left_out.end(),
                      [name](const std::string& prefix) { return name.substr(0, prefix.size()) == prefix; });
}

void* BlockPool::allocate(const char* name, std::size_t bytes, int lane, int device) {
  if (bytes == 0) return nullptr;
  const std::size_t wanted = block_bytes(bytes);
  const Kind kind{device, lane, wanted < kSmall};
  const std::lock_guard lock(mutex_);
  auto block = take_free(wanted, kind);
  if (block == blocks_.end() || splits_much(block->second, wanted)) {
    const std::size_t idle = reserved_ - in_use_;
    if (wanted >= kLarge && idle > (block != blocks_.end() ? in_use_ / 4 : in_use_ + 2 * wanted)) trim_locked();
    const auto added = add_segment(wanted, kind);  // may have trimmed
    block = added != blocks_.end() ? added : take_free(wanted, kind);
  }
  if (block == blocks_.end())
    throw DeviceError(std::string("no memory for the array '") + name + "'",
                      mebibytes(wanted) + " wanted, " + mebibytes(in_use_) + " in use by this run",
                      "use fewer particles, a smaller mesh or a smaller gravity.list_memory");
  free_[kind].erase({block->second.bytes, block->first});
  if (block->second.bytes - wanted >= (kind.small ? kSmallRest : kLargeRest)) {
    Block rest = block->second;
    rest.bytes -= wanted;
    block->second.bytes = wanted;
    free_[kind].emplace(rest.bytes, block->first + wanted);
    blocks_.emplace(block->first + wanted, rest);
  }
  block->second.name = name;
  block->second.extent = bytes;
  add_use(name, static_cast<std::ptrdiff_t>(block->second.bytes));
  return block->first;
}

BlockPool::Blocks::iterator BlockPool::take_free(std::size_t bytes, Kind kind) {
  const FreeBlocks& candidates = free_[kind];
  const auto found = candidates.lower_bound({bytes, nullptr});
  return found == candidates.end() ? blocks_.end() : blocks_.find(found->second);
}

// Whether most of a large block would be left over. An array that stays there would keep the block from its next owner,
// such as longer lists, and its segment from the system: a run could end with a third of its memory free, in pieces.
bool BlockPool::splits_much(const Block& block, std::size_t wanted) {
  return wanted >= kLarge && block.bytes > round_up(wanted, kSegmentGrain) + wanted / 8;
}

BlockPool::Blocks::iterator BlockPool::add_segment(std::size_t bytes, Kind kind) {
  const std::size_t roomy = kind.small       ? kSmallSegment
                            : bytes < kLarge ? kSharedSegment
                                             : round_up(bytes, kSegmentGrain);
  std::size_t size = roomy;
  void* memory = ask_system(size, kind.device);
  if (!memory) {
    trim_locked();
    memory = ask_system(size, kind.device);
  }
  if (!memory) memory = ask_system(size = bytes, kind.device);
  if (!memory) return blocks_.end();
  reserved_ += size;
  held_[kind.device].reserved += size;
  most_reserved_ = std::max(most_reserved_, reserved_);
  ++system_allocations_;
  auto* begin = static_cast<char*>(memory);
  free_[kind].emplace(size, begin);
  return blocks_.emplace(begin, Block{size, begin, kind, nullptr, 0}).first;
}

void* BlockPool::ask_system(std::size_t bytes, int device) {
  const Held& held = held_[device];
  return held.limit > 0 && held.reserved + bytes > held.limit ? nullptr : system_.allocate(bytes);
}

void BlockPool::release(void* memory) noexcept {
  if (!memory) return;
  const std::lock_guard lock(mutex_);
  auto block = blocks_.find(static_cast<char*>(memory));
  if (block == blocks_.end() || !block->second.name) return;
  add_use(block->second.name, -static_cast<std::ptrdiff_t>(block->second.bytes));
  block->second.name = nullptr;
  free_[block->second.kind].emplace(block->second.bytes, block->first);
  join_with_next(block);
  if (block != blocks_.begin()) join_with_next(std::prev(block));
}

// Merges two free neighbours of one segment.
void BlockPool::join_with_next(Blocks::iterator block) {
  const auto next = std::next(block);
  if (next == blocks_.end() || block->second.name || next->second.name) return;
  if (block->second.segment != next->second.segment) return;
  FreeBlocks& free = free_[block->second.kind];
  free.erase({block->second.bytes, block->first});
  free.erase({next->second.bytes, next->first});
  block->second.bytes += next->second.bytes;
  free.emplace(block->second.bytes, block->first);
  blocks_.erase(next);
}

void BlockPool::add_use(const char* name, std::ptrdiff_t bytes) {
  in_use_ += static_cast<std::size_t>(bytes);
  by_name_[name] += static_cast<std::size_t>(bytes);
  for (Watch& w : watches_) {
    if (!w.counts(name)) continue;
    w.now += static_cast<std::size_t>(bytes);
    if (w.now <= w.peak) continue;
    w.peak = w.now;
    w.arrays.clear();
    for (const auto& [array, held] : by_name_)
      if (held > 0 && w.counts(array)) w.arrays.emplace_back(array, held);
  }
}

void BlockPool::set_extent(void* memory, std::size_t bytes) noexcept {
  if (!memory) return;
  const std::lock_guard lock(mutex_);
  if (const auto block = blocks_.find(static_cast<char*>(memory)); block != blocks_.end() && block->second.name)
    block->second.extent = std::min(bytes, block->second.bytes);
}

std::vector<PoolBlock> BlockPool::blocks() {
  const std::lock_guard lock(mutex_);
  std::vector<PoolBlock> live;
  for (const auto& [begin, block] : blocks_)
    if (block.name) live.push_back({block.name, begin, block.extent});
  return live;
}

std::vector<PoolUse> BlockPool::sorted_table(
    const std::vector<std::pair<std::string_view, std::size_t>>& arrays) const {
  std::vector<PoolUse> table;
  for (const auto& [name, bytes] : arrays)
    if (bytes > 0) table.push_back({std::string(name), bytes});
  std::sort(table.begin(), table.end(), [](const PoolUse& a, const PoolUse& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name;
  });
  return table;
}

PoolReport BlockPool::report(int device) {
  const std::lock_guard lock(mutex_);
  PoolReport report;
  report.in_use = in_use_;
  report.high_water = watches_.front().peak;
  report.reserved = reserved_;
  report.reserved_here = held_[device].reserved;
  report.most_reserved = most_reserved_;
  report.system_allocations = system_allocations_;
  report.arrays = sorted_table({by_name_.begin(), by_name_.end()});
  for (const Watch& w : watches_) report.peaks.push_back({w.left_out, w.peak, sorted_table(w.arrays)});
  return report;
}

void BlockPool::watch(const std::vector<std::vector<std::string>>& left_out) {
  const std::lock_guard lock(mutex_);
  watches_.assign(1, {});
  for (const auto& prefixes : left_out) watches_.push_back({prefixes, 0, 0, {}});
  for (Watch& w : watches_) {
    for (const auto& [array, held] : by_name_) {
      if (held == 0 || !w.counts(array)) continue;
      w.now += held;
      w.arrays.emplace_back(array, held);
    }
    w.peak = w.now;
  }
  most_reserved_ = reserved_;
}

void BlockPool::set_limit(std::size_t bytes, int device) {
  const std::lock_guard lock(mutex_);
  held_[device].limit = bytes;
}

void BlockPool::trim() {
  const std::lock_guard lock(mutex_);
  trim_locked();
}

void BlockPool::trim_locked() {
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    const auto next = std::next(block);
    const bool whole = block->first == block->second.segment &&
                       (next == blocks_.end() || next->second.segment != block->second.segment);
    if (whole && !block->second.name) {
      free_[block->second.kind].erase({block->second.bytes, block->first});
      system_.release(block->first);
      reserved_ -= block->second.bytes;
      held_[block->second.kind.device].reserved -= block->second.bytes;
      blocks_.erase(block);
    }
    block = next;
  }
}

}  // namespace maki
