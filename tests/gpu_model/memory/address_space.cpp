#include "tests/gpu_model/memory/address_space.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <optional>

#include "tests/gpu_model/report.hpp"
#include "tests/gpu_model/runtime/call.hpp"
#include "tests/gpu_model/runtime/host_pages.hpp"

namespace gpu_model {
namespace {

constexpr std::size_t kAlignment = 256, kGap = 256;       // what runs over the end of memory finds none
constexpr std::size_t kPoisoned = std::size_t{64} << 20;  // of each block at most: more would only take time and memory
constexpr std::size_t kFreedKept = 256;

// A pool's block as work from `since` on may use it: its extent was another one before.
struct Block : Extent {
  WorkNumber since = 0;
};

struct State {
  int file = -1;
  std::map<Address, Extent> base;   // device memory, page-locked memory
  std::map<Address, Block> blocks;  // of the pool
  std::list<Block> gone;            // given back, but queued work may still use them
  std::deque<Extent> freed;         // the last ones
  std::size_t used[kMostDevices] = {};
};

State& make_state() {
  auto* s = new State;
  s->file = memfd_create("gpu_model", MFD_CLOEXEC);
  const auto map = [&](Address at, int protection) {
    void* wanted = reinterpret_cast<void*>(at);
    return mmap(wanted, kDeviceBytes, protection, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, s->file, 0) ==
           wanted;
  };
  rlimit files{};  // of the program's own files
  getrlimit(RLIMIT_FSIZE, &files);
  const rlimit largest{files.rlim_max, files.rlim_max};
  setrlimit(RLIMIT_FSIZE, &largest);
  if (s->file < 0 || ftruncate(s->file, static_cast<off_t>(kDeviceBytes)) != 0 || !map(kDeviceBegin, PROT_NONE) ||
      !map(kDeviceBegin + kView, PROT_READ | PROT_WRITE)) {
    std::perror("modelled GPU: addresses for device memory");
    std::exit(2);
  }
  setrlimit(RLIMIT_FSIZE, &files);
  madvise(reinterpret_cast<void*>(kDeviceBegin + kView), kDeviceBytes, MADV_DONTDUMP);
  watch_faults();
  return *s;
}

State& state() {
  static State& s = make_state();
  return s;
}

std::size_t range_bytes() { return kDeviceBytes / static_cast<std::size_t>(device_count()) / kAlignment * kAlignment; }
Address range_begin(int device) { return kDeviceBegin + static_cast<std::size_t>(device) * range_bytes(); }
std::size_t round_up(std::size_t bytes, std::size_t grain) { return (bytes + grain - 1) / grain * grain; }

// The entry with the largest key that is not above `a`.
template <class Map>
auto at_or_before(Map& map, Address a) {
  auto it = map.upper_bound(a);
  return it == map.begin() ? map.end() : std::prev(it);
}

// The first gap of a device's range that is large enough.
Address find_gap(int device, std::size_t bytes) {
  State& s = state();
  Address at = range_begin(device) + kAlignment;
  for (auto it = s.base.lower_bound(at); it != s.base.end() && it->second.begin < range_begin(device) + range_bytes();
       ++it) {
    if (it->second.begin >= at + bytes + kGap) break;
    at = round_up(it->second.end + kGap, kAlignment);
  }
  return at + bytes <= range_begin(device) + range_bytes() ? at : 0;
}

void poison(Address a, std::size_t bytes) { std::memset(view(a), kPoison, std::min(bytes, kPoisoned)); }

bool usable(const Block& b, Address a, WorkNumber work) {
  return a >= b.begin && a < b.end && work >= b.since && work < b.gone;
}

// Blocks that no queued work may use any more are forgotten.
void forget_gone() {
  std::erase_if(state().gone, [](const Block& b) { return b.gone <= first_queued(); });
}

void keep_for_queued(Block b) {
  forget_gone();
  b.gone = next_work();
  if (first_queued() < b.gone && b.since < b.gone) state().gone.push_front(std::move(b));
}

std::string bytes_of(const Extent& e) { return "(" + std::to_string(e.end - e.begin) + " bytes)"; }

std::string called(const Extent& e) {
  switch (e.kind) {
    case ExtentKind::kPoolBlock: return "the pool's block " + e.name + " " + bytes_of(e);
    case ExtentKind::kPageLocked: return "page-locked host memory " + bytes_of(e);
    case ExtentKind::kDevice: break;
  }
  return "memory of GPU " + std::to_string(e.device) + " " + bytes_of(e);
}

// Words for an address behind or before the nearest extent of a table.
template <class Map>
std::optional<std::string> beside(Map& table, Address a, Address from, Address to) {
  const auto before = at_or_before(table, a), after = table.upper_bound(a);
  const bool has_before = before != table.end() && before->second.begin >= from;
  const bool has_after = after != table.end() && after->second.begin < to;
  const Address behind = has_before ? a - before->second.end : ~Address{0};
  const Address ahead = has_after ? after->second.begin - a : ~Address{0};
  if (has_before && behind <= ahead) return std::to_string(behind) + " bytes behind " + called(before->second);
  if (has_after) return std::to_string(ahead) + " bytes before " + called(after->second);
  return std::nullopt;
}

// Of device memory: blocks in it are forgotten, its pages go back to the system.
void give_back_pages(const Extent& e) {
  State& s = state();
  s.used[e.device] -= round_up(e.end - e.begin, kAlignment);
  s.blocks.erase(s.blocks.lower_bound(e.begin), s.blocks.lower_bound(e.end));
  std::erase_if(s.gone, [&](const Block& b) { return b.begin >= e.begin && b.begin < e.end; });
  const Address first = round_up(e.begin, 4096), last = e.end / 4096 * 4096;
  if (last > first)
    fallocate(s.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first - kDeviceBegin),
              static_cast<off_t>(last - first));
}

}  // namespace

Address allocate_device(int device, std::size_t bytes) {
  State& s = state();
  if (bytes > gpu().memory - std::min(gpu().memory, s.used[device])) return 0;
  const Address a = find_gap(device, bytes);
  if (!a) return 0;
  s.used[device] += round_up(bytes, kAlignment);
  s.base[a] = {a, a + bytes, ExtentKind::kDevice, device, next_work(), ~0u, "", false};
  poison(a, bytes);
  return a;
}

Address allocate_page_locked(std::size_t bytes) {
  const Address a = map_host_pages(bytes);
  if (a) state().base[a] = {a, a + bytes, ExtentKind::kPageLocked, current_device(), next_work(), ~0u, "", false};
  return a;
}

bool free_memory(Address a) {
  State& s = state();
  const auto found = s.base.find(a);
  if (found == s.base.end()) return false;
  if (found->second.kind == ExtentKind::kDevice)
    give_back_pages(found->second);
  else
    unmap_host_pages(a);
  s.freed.push_front(found->second);
  if (s.freed.size() > kFreedKept) s.freed.pop_back();
  s.base.erase(found);
  return true;
}

void pool_block_made(Address a, std::size_t bytes, const std::string& name) {
  State& s = state();
  const auto base = at_or_before(s.base, a);
  if (base == s.base.end() || a >= base->second.end) return;  // the pool of another kind of memory
  base->second.cut = true;
  forget_gone();
  const WorkNumber next = next_work();
  s.blocks[a] = {{a, a + bytes, ExtentKind::kPoolBlock, base->second.device, next, ~0u, name, false}, next};
  if (first_queued() == next_work()) poison(a, bytes);
}

void pool_block_extent(Address a, std::size_t bytes) {
  const auto found = state().blocks.find(a);
  if (found == state().blocks.end() || found->second.end == a + bytes) return;
  Block& b = found->second;
  if (a + bytes < b.end) {
    keep_for_queued(b);
    b.since = next_work();
  }
  b.end = a + bytes;
}

void pool_block_gone(Address a) {
  const auto found = state().blocks.find(a);
  if (found == state().blocks.end()) return;
  keep_for_queued(found->second);
  state().blocks.erase(found);
}

const Extent* find_extent(Address a, WorkNumber work) {
  State& s = state();
  if (const auto b = at_or_before(s.blocks, a); b != s.blocks.end() && usable(b->second, a, work)) return &b->second;
  for (const Block& b : s.gone)
    if (usable(b, a, work)) return &b;
  const Extent* e = find_base(a);
  return e && !e->cut && work >= e->made ? e : nullptr;
}

bool belongs_to_another_gpu(const Extent& extent, WorkNumber work) {
  return extent.kind != ExtentKind::kPageLocked && extent.device != device_of(work);
}

const Extent* find_base(Address a) {
  const auto e = at_or_before(state().base, a);
  return e == state().base.end() || a >= e->second.end ? nullptr : &e->second;
}

std::size_t device_bytes_used(int device) { return state().used[device]; }

std::string whereabouts(Address a, WorkNumber work) {
  State& s = state();
  if (const Extent* e = find_extent(a, work)) return "at byte " + std::to_string(a - e->begin) + " of " + called(*e);
  const auto base = at_or_before(s.base, a);
  if (base != s.base.end() && a < base->second.end) {
    const Extent& e = base->second;
    if (!e.cut) return "in " + called(e) + ", which was made later";
    for (const Block& b : s.gone)
      if (a >= b.begin && a < b.end) return "in " + called(b) + ", which was given back before";
    if (const auto b = at_or_before(s.blocks, a); b != s.blocks.end() && a < b->second.end)
      return "in " + called(b->second) + ", which was made later";
    if (const auto text = beside(s.blocks, a, e.begin, e.end)) return *text;
    return "in memory of the pool that is in no block";
  }
  if (base != s.base.end() && a - base->second.end < kGap)
    return std::to_string(a - base->second.end) + " bytes behind " + called(base->second);
  for (const Extent& e : s.freed)
    if (a >= e.begin && a < e.end) return "in " + called(e) + ", which was freed";
  if (a < 4096) return "at the null address";
  if (!on_device(a)) return "in the host's memory";
  const int device = static_cast<int>((a - kDeviceBegin) / range_bytes());
  const auto text = beside(s.base, a, range_begin(device), range_begin(device) + range_bytes());
  return text ? *text : "in no memory of GPU " + std::to_string(device);
}

}  // namespace gpu_model
