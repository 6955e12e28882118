// Warp operations: each waits until all lanes of its mask are there, then every one gets its result.
#include <algorithm>
#include <bit>

#include "tests/simt/runtime.hpp"

namespace maki::simt {
namespace {

template <class F>
void for_lanes(unsigned mask, const F& f) {
  for (; mask; mask &= mask - 1) f(static_cast<unsigned>(std::countr_zero(mask)));
}

// The lane that `lane` reads from; itself where the argument points out of its segment of `width` lanes.
unsigned shuffle_source(WarpOp op, unsigned lane, int argument, int width) {
  const int first = static_cast<int>(lane) & ~(width - 1), end = first + width, own = static_cast<int>(lane);
  int source = own;
  if (op == WarpOp::shuffle) return static_cast<unsigned>(first + (argument & (width - 1)));
  if (op == WarpOp::shuffle_up) source = own - argument;
  if (op == WarpOp::shuffle_down) source = own + argument;
  // A partner in an earlier segment may be read, one in a later one may not.
  if (op == WarpOp::shuffle_xor) return static_cast<unsigned>((own ^ argument) < end ? own ^ argument : own);
  return static_cast<unsigned>(source >= first && source < end ? source : own);
}

void shuffle(WarpOp op, unsigned mask, Thread* lanes) {
  for_lanes(mask, [&](unsigned lane) {
    Thread& t = lanes[lane];
    const unsigned source = shuffle_source(op, lane, t.argument, t.width);
    if (source >= kLanes || !(mask >> source & 1))
      fail({.kind = FaultKind::bad_shuffle, .site = t.site, .thread = static_cast<int>(t.index),
            .what = "reads from lane " + std::to_string(source) + ", which is not in the mask"});
    t.result = lanes[source].value;
  });
}

std::uint64_t reduce(WarpOp op, std::uint64_t a, std::uint64_t b) {
  const auto x = static_cast<std::uint32_t>(a), y = static_cast<std::uint32_t>(b);
  const auto i = static_cast<std::int32_t>(x), j = static_cast<std::int32_t>(y);
  switch (op) {
    case WarpOp::add: return x + y;
    case WarpOp::min_signed: return static_cast<std::uint32_t>(std::min(i, j));
    case WarpOp::max_signed: return static_cast<std::uint32_t>(std::max(i, j));
    case WarpOp::min_unsigned: return std::min(x, y);
    case WarpOp::max_unsigned: return std::max(x, y);
    case WarpOp::bit_and: return x & y;
    case WarpOp::bit_or: return x | y;
    default: return x ^ y;
  }
}

// What happened before in any lane of the mask comes before what any of them does from now on.
void join_clocks(unsigned mask, Thread* lanes) {
  std::uint32_t* clocks = running.clocks.data() + lanes[0].index * kLanes;
  std::uint32_t joined[kLanes] = {}, latest = 0;
  for_lanes(mask, [&](unsigned lane) {
    for (unsigned i = 0; i < kLanes; ++i) joined[i] = std::max(joined[i], clocks[lane * kLanes + i]);
    latest = std::max(latest, lanes[lane].clock);
  });
  for_lanes(mask, [&](unsigned lane) {
    std::uint32_t* own = clocks + lane * kLanes;
    std::copy(joined, joined + kLanes, own);
    own[lane] = lanes[lane].clock = latest + 1;
    std::uint32_t known = latest + 1;
    for (unsigned i = 0; i < kLanes; ++i)
      if (i != lane) known = std::min(known, own[i]);
    lanes[lane].known = known;
  });
}

void resolve(WarpOp op, unsigned mask, Thread* lanes) {
  unsigned votes = 0;
  std::uint64_t total = lanes[std::countr_zero(mask)].value;
  for_lanes(mask, [&](unsigned lane) { votes |= lanes[lane].value ? 1u << lane : 0u; });
  switch (op) {
    case WarpOp::sync: return join_clocks(mask, lanes);
    case WarpOp::shuffle:
    case WarpOp::shuffle_up:
    case WarpOp::shuffle_down:
    case WarpOp::shuffle_xor: return shuffle(op, mask, lanes);
    case WarpOp::ballot: total = votes; break;
    case WarpOp::any: total = votes != 0; break;
    case WarpOp::all: total = votes == mask; break;
    case WarpOp::match_any:
      return for_lanes(mask, [&](unsigned lane) {
        unsigned equal = 0;
        for_lanes(mask, [&](unsigned i) { equal |= lanes[i].value == lanes[lane].value ? 1u << i : 0u; });
        lanes[lane].result = equal;
      });
    case WarpOp::match_all: {
      bool all = true;
      for_lanes(mask, [&](unsigned i) { all = all && lanes[i].value == total; });
      total = all ? mask : 0;
      break;
    }
    default: {
      const unsigned rest = mask & (mask - 1);
      for_lanes(rest, [&](unsigned lane) { total = reduce(op, total, lanes[lane].value); });
    }
  }
  for_lanes(mask, [&](unsigned lane) { lanes[lane].result = total; });
}

void check_mask(const Thread& self, unsigned mask, Site site) {
  if (!(mask >> self.lane() & 1))
    fail({.kind = FaultKind::missing_lane, .site = site,
          .what = "calls a warp operation with a mask that lacks its own lane " + std::to_string(self.lane())});
  for_lanes(mask, [&](unsigned lane) {
    const unsigned index = self.warp() * kLanes + lane;
    const bool exists = index < running.block_size;
    if (exists && running.threads[index].state != Thread::State::done) return;
    fail({.kind = FaultKind::missing_lane, .site = site,
          .what = "waits for the lanes of its mask, but lane " + std::to_string(lane) + " of it " +
                  (exists ? "has ended" : "is not in the block")});
  });
}

}  // namespace

std::uint64_t warp_operation(WarpOp op, unsigned mask, std::uint64_t value, int argument, int width, Site site) {
  const Pause pause;
  Thread& self = *running.thread;
  check_mask(self, mask, site);
  if (width < 1 || width > 32 || !std::has_single_bit(static_cast<unsigned>(width)))
    fail({.kind = FaultKind::bad_shuffle, .site = site, .what = "shuffles with a width of " + std::to_string(width)});
  self.state = Thread::State::at_warp_operation;
  self.op = op;
  self.mask = mask;
  self.value = value;
  self.argument = argument;
  self.width = width;
  self.site = site;
  Thread* lanes = running.threads.data() + self.warp() * kLanes;
  bool complete = true;
  for_lanes(mask, [&](unsigned lane) {
    const Thread& t = lanes[lane];
    complete = complete && t.state == Thread::State::at_warp_operation && t.mask == mask && t.op == op &&
               same(t.site, site);
  });
  if (complete) {
    resolve(op, mask, lanes);
    for_lanes(mask, [&](unsigned lane) { make_ready(lanes[lane].index); });
  }
  wait_for_turn();
  return self.result;
}

}  // namespace maki::simt
