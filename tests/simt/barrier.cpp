// __syncthreads and its relatives.
#include <algorithm>

#include "tests/simt/runtime.hpp"

namespace maki::simt {
namespace {

void release_barrier(BlockOp op) {
  int all = 1, any = 0, count = 0;
  for (const Thread& t : running.threads) {
    all &= t.predicate != 0;
    any |= t.predicate != 0;
    count += t.predicate != 0;
  }
  for (Thread& t : running.threads) t.result = op == BlockOp::all ? all : op == BlockOp::any ? any : count;
  ++hot.phase;
  running.waiting = 0;
  make_all_ready();
}

}  // namespace

int block_barrier(BlockOp op, int predicate, Site site) {
  const Pause pause;
  Thread& self = *running.thread;
  self.site = site;
  self.predicate = predicate;
  if (running.done > 0) {
    const auto ended = std::find_if(running.threads.begin(), running.threads.end(),
                                    [](const Thread& t) { return t.state == Thread::State::done; });
    fail({.kind = FaultKind::divergent_barrier, .site = site,
          .what = "waits for the block at this barrier, but " + name_thread(ended->index) + " has ended"});
  }
  if (running.waiting == 0) running.first_waiting = self.index;
  const Thread& first = running.threads[running.first_waiting];
  if (!same(first.site, site))
    fail({.kind = FaultKind::divergent_barrier, .site = site, .has_other = true, .other_site = first.site,
          .other_thread = static_cast<int>(first.index), .other_block = running.block,
          .what = "waits at this barrier, but not all of the block do", .other_what = "waits at another barrier"});
  self.state = Thread::State::at_barrier;
  if (++running.waiting == running.block_size) release_barrier(op);
  wait_for_turn();
  return static_cast<int>(self.result);
}

}  // namespace maki::simt
