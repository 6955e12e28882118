// A block before its first instruction: special registers, shared memory, what nobody has written yet.
#include "tests/gpu_model/interpreter/warp.hpp"

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
  w.done = w.at_barrier = w.tainted = w.leave = false;
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

}  // namespace

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

}  // namespace gpu_model
