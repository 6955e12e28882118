// A block before its first instruction: special registers, shared memory, what nobody has written yet.
#include "tests/gpu_model/interpreter/warp.hpp"

#include <xmmintrin.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "tests/gpu_model/choices.hpp"
#include "tests/gpu_model/interpreter/operations.hpp"
#include "tests/gpu_model/interpreter/program.hpp"

namespace gpu_model {

namespace {

std::uint32_t special(const Warp& w, const std::string& name, unsigned lane) {
  const Block& b = *w.block;
  const unsigned t = w.number * kLanes + lane, bx = b.launch->block[0], by = b.launch->block[1];
  const int axis = name.back() - 'x';
  const unsigned thread[3] = {t % bx, t / bx % by, t / bx / by};
  if (name.starts_with("%tid.")) return thread[axis];
  if (name.starts_with("%ctaid.")) return b.place[axis];
  if (name.starts_with("%ntid.")) return b.launch->block[static_cast<unsigned>(axis)];
  if (name.starts_with("%nctaid.")) return b.launch->grid[static_cast<unsigned>(axis)];
  if (name == "%laneid") return lane;
  if (name == "%warpid") return w.number;
  if (name == "%lanemask_eq") return 1u << lane;
  if (name == "%lanemask_le") return (2u << lane) - 1;
  if (name == "%lanemask_lt") return (1u << lane) - 1;
  if (name == "%lanemask_ge") return ~((1u << lane) - 1);
  return ~((2u << lane) - 1);  // %lanemask_gt; decoding knows these names only
}

void begin_warp(Warp& w, Block& b, std::uint32_t number) {
  const Kernel& k = *b.kernel;
  w.block = &b;
  w.number = number;
  w.file.resize(k.register_bytes + 64);
  w.registers = w.file.data() + (-reinterpret_cast<std::uintptr_t>(w.file.data()) & 63);
  w.constants = k.constants.data();
  const std::uint32_t left = b.threads - number * kLanes;
  w.present = w.alive = left >= kLanes ? ~0u : (1u << left) - 1;
  w.groups.assign(1, {0, w.present, Group::kReady, 0});
  w.active = w.pc = 0;
  w.stop = ~0u;
  w.at_barrier = w.tainted = false;
  w.all_met = b.began;
  w.met.clear();
  w.local.resize(std::size_t{k.local_bytes} * kLanes);
  w.local_written.assign(w.local.size(), 0);
  w.undefined_predicates.assign(k.predicate_bytes / 4, 0);
  w.undefined_rows.assign((k.register_bytes - k.predicate_bytes) / 128, 0);
  for (unsigned l = 0; l < kLanes; ++l) w.copies[l].clear(), w.copy_groups[l] = 0;
  for (const auto& s : k.specials)
    for (unsigned l = 0; l < kLanes; ++l) row<std::uint32_t>(w, s.row)[l] = special(w, s.name, l);
}

void begin_block(Block& b, const Launch& launch, std::uint32_t index) {
  const Kernel& k = *launch.kernel;
  b.kernel = &k;
  b.launch = &launch;
  b.index = index;
  b.place[0] = index % launch.grid[0];
  b.place[1] = index / launch.grid[0] % launch.grid[1];
  b.place[2] = index / launch.grid[0] / launch.grid[1];
  b.threads = launch.block[0] * launch.block[1] * launch.block[2];
  b.began = b.barrier = ++now;
  b.shared_bytes = k.shared_end + static_cast<std::uint32_t>(launch.dynamic_shared);
  b.shared.assign(b.shared_bytes, static_cast<char>(0xff));
  if (b.shared_cells.size() != b.shared_bytes / 4 + 1) b.shared_cells.assign(b.shared_bytes / 4 + 1, {});
  b.landing.assign(b.shared_bytes, 0);
  b.copies_under_way = 0;
  b.seen.clear(), b.to_see.clear();
  b.fenced = false;
  b.warps.resize((b.threads + kLanes - 1) / kLanes);
  for (std::uint32_t n = 0; n < b.warps.size(); ++n) begin_warp(b.warps[n], b, n);
}

// Whose turn it is: groups of lanes in a warp, warps and blocks of a launch.

// The present group waits in the list, so that another one can go on.
void put_back(Warp& w) {
  if (w.active) w.groups.push_back({w.pc, w.active, Group::kReady, 0});
  w.active = 0;
}

// Makes a ready group the present one; false: there is none.
bool choose_group(Warp& w, Choices& draw) {
  Group* chosen = nullptr;
  std::size_t ready = 0;
  for (Group& g : w.groups)
    if (g.state == Group::kReady) {
      ++ready;
      if (!chosen || g.pc < chosen->pc) chosen = &g;
    }
  if (!chosen) return false;
  // The one furthest behind lets groups meet again soonest; now and then another one goes first.
  const bool other = ready > 1 && draw.below(16) == 0;
  if (other) {
    std::size_t skip = draw.below(ready);
    for (Group& g : w.groups)
      if (g.state == Group::kReady && skip-- == 0) chosen = &g;
  }
  w.pc = chosen->pc;
  Lanes lanes = 0;
  w.stop = ~0u;
  std::erase_if(w.groups, [&](const Group& g) {
    if (g.state != Group::kReady) return false;
    if (g.pc == w.pc) lanes |= g.lanes;
    return g.pc == w.pc;
  });
  if (!other)
    for (const Group& g : w.groups)
      if (g.state == Group::kReady) w.stop = std::min(w.stop, g.pc);
  set_active(w, lanes);
  return true;
}

// No group can go on: all are at the block's barrier, or some wait for lanes that will not come.
void settle(Warp& w) {
  if (!w.alive) return;
  const auto& code = w.block->kernel->code;
  const auto stuck =
      std::find_if(w.groups.begin(), w.groups.end(), [](const Group& g) { return g.state == Group::kAtWarp; });
  if (stuck != w.groups.end()) {
    const Lanes missing = stuck->mask & ~stuck->lanes;
    fatal(w, code[stuck->pc], first_lane(stuck->lanes), "a lane missing from a mask",
          "lane " + std::to_string(first_lane(missing)) + " of the mask does not come; it waits elsewhere");
  }
  const std::uint32_t pc = w.groups.front().pc;
  for (const Group& g : w.groups)
    if (g.pc != pc)
      fatal(w, code[g.pc], first_lane(g.lanes), "a divergent barrier", "threads of a warp wait at different barriers");
  if (w.alive != w.present)
    fatal(w, code[pc], first_lane(w.alive), "a divergent barrier",
          "thread " + std::to_string(w.number * kLanes + first_lane(w.present & ~w.alive)) +
              " of the block has ended without it");
  w.at_barrier = true;
  w.barrier_pc = pc;
}

void execute(Warp& w, int turns, Choices& draw, const Kernel& k) {
  if (!w.active && !choose_group(w, draw)) return settle(w);
  for (const Instruction* code = k.code.data(); turns > 0; --turns) {
    if (w.pc >= w.stop) {
      put_back(w);
      choose_group(w, draw);
    }
    const Instruction& i = code[w.pc];
    ++w.pc;
    if (i.guard != kNoRow && i.run != branch) {
      Lanes m = *row<Lanes>(w, i.guard);
      if (w.tainted) check_guard(w, i);
      if (i.negated) m = ~m;
      m &= w.active;
      if (!m) continue;
      const Lanes all = w.active;
      if (i.jumps) {  // the others go on
        if (m != all) {
          w.groups.push_back({w.pc, all & ~m, Group::kReady, 0});
          w.stop = std::min(w.stop, w.pc);
          set_active(w, m);
        }
        i.run(w, i);
      } else {
        set_active(w, m);
        if (w.tainted) pass_taint(w, i);
        i.run(w, i);
        set_active(w, all);
      }
    } else {
      if (w.tainted) pass_taint(w, i);
      i.run(w, i);
    }
    if (!w.active && !choose_group(w, draw)) return settle(w);
  }
  if (draw.below(4) == 0) put_back(w);
}

// ---- blocks ---------------------------------------------------------------------------------------------------------

// All threads have come: the barrier opens.
void open_barrier(Block& b) {
  const Instruction& i = b.kernel->code[b.warps.front().barrier_pc];
  Lanes any = 0;
  for (const Warp& w : b.warps) any |= w.barrier_value & w.present;
  b.barrier = ++now;
  see_others(b);
  for (Warp& w : b.warps) {
    if (i.to[0] != kNoRow) *row<Lanes>(w, i.to[0]) = any != 0 ? ~0u : 0;
    for (Group& g : w.groups) g.state = Group::kReady, ++g.pc;
    w.at_barrier = false;
  }
}

// Lets a warp of the block go on; false: the block is at its end.
bool advance(Block& b, Choices& draw, int turns) {
  Warp* ready[64];
  std::size_t count = 0, waiting = 0;
  for (Warp& w : b.warps) {
    if (!w.alive) continue;
    if (w.at_barrier)
      ++waiting;
    else
      ready[count++] = &w;
  }
  if (count) {
    execute(*ready[draw.below(count)], turns, draw, *b.kernel);
    return true;
  }
  if (!waiting) return false;
  const auto& code = b.kernel->code;
  const Warp* first = nullptr;
  for (const Warp& w : b.warps)
    if (w.alive) first = &w;
  for (const Warp& w : b.warps) {
    if (!w.alive)
      fatal(*first, code[first->barrier_pc], first_lane(first->alive), "a divergent barrier",
            "thread " + std::to_string(w.number * kLanes) + " of the block has ended without it");
    if (w.barrier_pc != first->barrier_pc)
      fatal(w, code[w.barrier_pc], first_lane(w.alive), "a divergent barrier",
            "threads of the block wait at different barriers");
  }
  open_barrier(b);
  return true;
}

// Warp instructions that a launch may take without a block of it coming to its end: MAKI_GPU_MODEL_PATIENCE.
std::uint64_t patience() {
  static const std::uint64_t most = [] {
    const char* text = std::getenv("MAKI_GPU_MODEL_PATIENCE");
    return text && *text ? std::strtoull(text, nullptr, 10) : std::uint64_t{1} << 34;
  }();
  return most;
}

// Of a launch that has taken more.
[[noreturn]] void give_up(const Block& b) {
  for (const Warp& w : b.warps)
    if (w.alive && (w.active || !w.groups.empty())) {
      const std::uint32_t pc = w.active ? w.pc : w.groups.front().pc;
      fatal(w, b.kernel->code[pc], first_lane(w.active ? w.active : w.groups.front().lanes),
            "a kernel that does not end",
            std::to_string(patience()) +
                " warp instructions, and no block has come to its end (MAKI_GPU_MODEL_PATIENCE)");
    }
  throw Stopped{};
}

// Subnormal numbers are zero while it lives, as in Maki's kernels (-ftz=true).
class FlushToZero {
 public:
  FlushToZero() { _mm_setcsr(before_ | 0x8040); }  // flush results, take operands as zero
  ~FlushToZero() { _mm_setcsr(before_); }

 private:
  const unsigned before_ = _mm_getcsr();
};

}  // namespace

void nothing(Warp&, const Instruction&) {}

void branch(Warp& w, const Instruction& i) {
  Lanes m = w.active;
  if (i.guard != kNoRow) {
    if (w.tainted) check_guard(w, i);
    m &= *row<Lanes>(w, i.guard) ^ (i.negated ? ~0u : 0);
  }
  if (m == w.active) {
    w.pc = i.target;
  } else if (m) {
    w.groups.push_back({i.target, m, Group::kReady, 0});
    w.groups.push_back({w.pc, w.active & ~m, Group::kReady, 0});
    w.active = 0;
  }
}

void end_lanes(Warp& w, const Instruction&) {
  w.alive &= ~w.active;
  w.active = 0;
}

void note_meeting(Warp& w, Lanes mask) {
  ++now;
  if (mask == w.present) {
    w.all_met = now;
    return;
  }
  if (w.met.empty()) w.met.assign(kLanes * kLanes, 0);
  for (Lanes a = mask; a; a &= a - 1)
    for (Lanes b = mask; b; b &= b - 1) w.met[first_lane(a) * kLanes + first_lane(b)] = now;
}

bool meet(Warp& w, const Instruction& i, Lanes mask) {
  const std::uint32_t here = place_of(w, i);
  if (const Lanes outside = w.active & ~mask)
    fatal(w, i, first_lane(outside), "a lane missing from a mask",
          "the mask of a warp operation leaves out its caller");
  if (const Lanes ended = mask & ~w.alive)
    fatal(w, i, first_lane(w.active), "a lane missing from a mask",
          "lane " + std::to_string(first_lane(ended)) + " of the mask has ended");
  Lanes there = w.active;
  if (there != mask)
    std::erase_if(w.groups, [&](const Group& g) {
      if (g.state != Group::kAtWarp || g.pc != here || g.mask != mask) return false;
      there |= g.lanes;
      return true;
    });
  if (there == mask) {
    set_active(w, there);
    return true;
  }
  w.groups.push_back({here, there, Group::kAtWarp, mask});
  w.active = 0;
  return false;
}

void wait_at_barrier(Warp& w, const Instruction& i) {
  if (i.from[0] != kNoRow) {
    const Lanes value = *row<Lanes>(w, i.from[0]) ^ (i.negated ? ~0u : 0);
    w.barrier_value = (w.barrier_value & ~w.active) | (value & w.active);
  }
  w.groups.push_back({place_of(w, i), w.active, Group::kAtBlock, 0});
  w.active = 0;
}

void run(const Launch& launch) {
  static std::uint64_t launches = 0;
  Choices draw(choices_seed() * 1000003 + ++launches);
  const std::uint64_t blocks = std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  // As on a GPU, blocks begin in order; some are under way together, and which of them goes on is drawn.
  static std::vector<std::unique_ptr<Block>> places;  // kept: their memory is used again
  const std::size_t together = 1 + draw.below(3);
  while (places.size() < together) places.push_back(std::make_unique<Block>());
  now = 0;
  release_clocks();
  const FlushToZero as_gpus_do;
  std::vector<Block*> running;
  std::uint64_t next = 0;
  for (; next < blocks && running.size() < together; ++next) {
    Block& b = *places[running.size()];
    std::fill(b.shared_cells.begin(), b.shared_cells.end(), Cell{});
    begin_block(b, launch, static_cast<std::uint32_t>(next));
    running.push_back(&b);
  }
  std::uint64_t taken = 0;
  while (!running.empty()) {
    const std::size_t turn = draw.below(running.size());
    Block& b = *running[turn];
    bool more = true;
    for (std::size_t steps = 1 + draw.below(2 * b.warps.size()); more && steps > 0; --steps) {
      const auto turns = static_cast<int>(64 + draw.below(512));
      taken += static_cast<std::uint64_t>(turns);
      more = advance(b, draw, turns);
    }
    if (taken > patience()) give_up(b);
    if (more) continue;
    taken = 0;
    if (next < blocks) {
      begin_block(b, launch, static_cast<std::uint32_t>(next++));
    } else {
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(turn));
    }
  }
}

}  // namespace gpu_model
