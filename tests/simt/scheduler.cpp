// Blocks one after another, threads as fibers.
#include <boost/context/detail/fcontext.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "tests/simt/runtime.hpp"

namespace maki::simt {

Hot hot;
Launch running;

namespace {

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

constexpr std::size_t kGuardBytes = 4096;
constexpr std::size_t kStackStride = kStackBytes + kGuardBytes;

struct Scheduler {
  Counters counters;
  char* stacks = nullptr;
  fcontext_t context = nullptr;   // of the launcher, while a thread runs
  std::vector<unsigned> ready;    // the last one is the next to run
  std::vector<unsigned> parked;
  std::uint64_t step_limit = 0;
  std::optional<Report> fault;
};
Scheduler scheduler;

char* stack_of(unsigned thread) {
  if (!scheduler.stacks) {
    scheduler.stacks = static_cast<char*>(reserve(kMostThreads * kStackStride));
    for (unsigned i = 0; i < kMostThreads; ++i) mprotect(scheduler.stacks + i * kStackStride, kGuardBytes, PROT_NONE);
  }
  return scheduler.stacks + thread * kStackStride + kGuardBytes;
}

// From a thread to the launcher, and back when the thread's turn comes.
void leave_thread() {
  const transfer_t back = jump_fcontext(scheduler.context, nullptr);
  scheduler.context = back.fctx;
}

void end_thread() {
  const Pause pause;
  Thread& self = *running.thread;
  wait_copies(0);  // what is still under way lands with the end of the kernel
  self.state = Thread::State::done;
  ++running.done;
  for (const Thread& t : running.threads) {
    if (t.state == Thread::State::at_barrier)
      fail({.kind = FaultKind::divergent_barrier, .site = t.site, .thread = static_cast<int>(t.index),
            .what = "waits for the block at this barrier, but " + name_thread(self.index) + " has ended"});
    if (t.state == Thread::State::at_warp_operation && t.warp() == self.warp() && (t.mask >> self.lane() & 1))
      fail({.kind = FaultKind::missing_lane, .site = t.site, .thread = static_cast<int>(t.index),
            .what = "waits for the lanes of its mask, but lane " + std::to_string(self.lane()) + " of it has ended"});
  }
}

void thread_main(transfer_t from) {
  scheduler.context = from.fctx;
  try {
    hot.active = true;
    running.run(running.callable);
    hot.active = false;
    end_thread();
  } catch (const std::exception& e) {
    hot.active = false;
    scheduler.fault = Report{.kind = FaultKind::exception, .thread = static_cast<int>(running.thread->index),
                             .what = std::string("an exception left the kernel: ") + e.what()};
  }
  leave_thread();
  std::abort();  // a thread that has ended is not called again
}

void run_thread(Thread& t) {
  running.thread = &t;
  hot.stack = reinterpret_cast<std::uintptr_t>(stack_of(t.index));
  hot.warp = t.warp();
  hot.bit = 1u << t.lane();
  hot.clock = t.clock;
  hot.known = t.known;
  hot.known_lanes = running.clocks.data() + t.index * kLanes;
  hot.budget = draw_budget();
  ++scheduler.counters.switches;
  hot.active = true;
  const transfer_t back = jump_fcontext(t.context, nullptr);
  hot.active = false;
  t.context = back.fctx;
  running.thread = nullptr;
}

// Nobody can run and not all have ended.
[[noreturn]] void report_deadlock() {
  for (const Thread& t : running.threads) {
    if (t.state != Thread::State::at_warp_operation) continue;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const unsigned index = t.warp() * kLanes + lane;
      if (!(t.mask >> lane & 1)) continue;
      const Thread& missing = running.threads[index];
      const bool here = missing.state == Thread::State::at_warp_operation && same(missing.site, t.site);
      if (here && missing.mask == t.mask) continue;
      throw_fault({.kind = FaultKind::missing_lane, .site = t.site, .thread = static_cast<int>(t.index),
                   .has_other = true, .other_site = missing.site, .other_thread = static_cast<int>(index),
                   .other_block = running.block,
                   .what = "waits for the lanes of its mask, but lane " + std::to_string(lane) +
                           (here ? " came with another mask" : " does not come"),
                   .other_what = "waits"});
    }
  }
  throw_fault({.kind = FaultKind::divergent_barrier, .what = "the threads wait for each other"});
}

void start_block(unsigned number) {
  running.block = number;
  hot.block_start = ++hot.phase;
  ++hot.block_serial;
  running.starts.push_back(hot.block_start);
  running.order.push_back(number);
  start_block_memory();
  std::fill(running.clocks.begin(), running.clocks.end(), 0u);
  for (unsigned i = 0; i < running.block_size; ++i) {
    Thread& t = running.threads[i];
    t.index = i;
    t.state = Thread::State::ready;
    t.clock = 1;
    t.known = 0;
    t.fenced = false;
    t.batch = 0;
    t.copies.clear();
    running.clocks[i * kLanes + i % kLanes] = 1;
    t.context = make_fcontext(stack_of(i) + kStackBytes, kStackBytes, thread_main);
  }
  running.waiting = running.done = 0;
  scheduler.parked.clear();
  scheduler.step_limit = hot.accesses + scheduler.counters.switches + options().patience;
  make_all_ready();
}

void run_block(unsigned number) {
  start_block(number);
  while (running.done < running.block_size) {
    auto& next = scheduler.ready.empty() ? scheduler.parked : scheduler.ready;
    if (next.empty()) report_deadlock();
    Thread& t = running.threads[next.back()];
    next.pop_back();
    run_thread(t);
    if (scheduler.fault) throw_fault(*scheduler.fault);
    if (hot.accesses + scheduler.counters.switches > scheduler.step_limit)
      throw_fault({.kind = FaultKind::endless, .thread = static_cast<int>(t.index),
                   .what = "the block does not end (Options::patience)"});
  }
  ++scheduler.counters.blocks;
  scheduler.counters.threads += running.block_size;
}

}  // namespace

Counters counters() {
  Counters all = scheduler.counters;
  all.accesses = hot.accesses;
  return all;
}

void launch_threads(const char* name, unsigned grid, unsigned block, std::size_t shared_bytes,
                    void (*run)(const void* callable), const void* callable, std::size_t callable_bytes) {
  running.name = name;
  running.grid = grid;
  running.block_size = block;
  running.shared_bytes = shared_bytes;
  running.run = run;
  running.callable = callable;
  running.block = 0;
  if (grid == 0 || block == 0 || block > kMostThreads || shared_bytes > kMostShared)
    throw_fault({.kind = FaultKind::bad_launch,
                 .what = std::to_string(grid) + " blocks of " + std::to_string(block) + " threads with " +
                         std::to_string(shared_bytes) + " bytes of dynamic shared memory"});
  running.threads.resize(block);
  running.clocks.resize(std::size_t{(block + kLanes - 1) / kLanes} * kLanes * kLanes);
  running.starts.clear();
  running.order.clear();
  scheduler.fault.reset();
  hot.launch_start = hot.phase + 1;
  start_launch_memory(callable, callable_bytes);
  ++scheduler.counters.launches;
  for (const unsigned number : block_order(grid)) run_block(number);
}

void give_way_now() {
  const Pause pause;
  make_ready(running.thread->index);
  leave_thread();
}

void give_way() { give_way_now(); }

namespace {

// By the chain of frame pointers, with which this folder is compiled.
std::vector<std::uint32_t> callers(void* frame) {
  std::vector<std::uint32_t> found;
  for (auto at = reinterpret_cast<std::uintptr_t>(frame); at - hot.stack < kStackBytes - 16 && found.size() < 24;) {
    const auto* words = reinterpret_cast<const std::uintptr_t*>(at);
    found.push_back(place_of(reinterpret_cast<const void*>(words[1])));
    if (words[0] <= at) break;
    at = words[0];
  }
  return found;
}

}  // namespace

void fail(Report report) {
  hot.active = false;
  if (report.thread < 0) report.thread = static_cast<int>(running.thread->index);
  report.callers = callers(__builtin_frame_address(0));
  scheduler.fault = std::move(report);
  leave_thread();
  std::abort();  // the launch is over
}

void trap(Site site) {
  hot.active = false;
  fail({.kind = FaultKind::exception, .site = site, .what = "__trap()"});
}

bool same(Site a, Site b) { return a.line == b.line && (a.file == b.file || std::string(a.file) == b.file); }

bool is_stack(std::uintptr_t address) {
  return scheduler.stacks && address - reinterpret_cast<std::uintptr_t>(scheduler.stacks) < kMostThreads * kStackStride;
}

unsigned block_of_phase(std::uint32_t phase) {
  const auto after = std::upper_bound(running.starts.begin(), running.starts.end(), phase);
  return running.order[static_cast<std::size_t>(after - running.starts.begin()) - 1];
}

uint3 thread_index() { return {running.thread->index, 0, 0}; }
uint3 block_index() { return {running.block, 0, 0}; }
dim3 block_size() { return {running.block_size}; }
dim3 grid_size() { return {running.grid}; }
void* dynamic_shared() { return shared_memory(); }

void make_ready(unsigned thread) {
  auto& ready = scheduler.ready;
  running.threads[thread].state = Thread::State::ready;
  ready.push_back(thread);
  std::swap(ready.back(), ready[random_number() % ready.size()]);
}

void make_all_ready() {
  thread_order(scheduler.ready, running.block_size);
  for (Thread& t : running.threads) t.state = Thread::State::ready;
}

void wait_for_turn() { leave_thread(); }

void wait_for_all_others() {
  running.thread->state = Thread::State::parked;
  scheduler.parked.push_back(running.thread->index);
  leave_thread();
}

}  // namespace maki::simt
