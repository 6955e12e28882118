// List evaluation and direct sum on the CPU: groups in parallel, the work itself in the instruction-set units.
#include "kernels/force/evaluate_cpu.hpp"

#include <algorithm>
#include <cstddef>

#include "kernels/force/force.hpp"

namespace maki {

namespace {

GroupTask task_of(const SourceView& sources, const ListView& lists, bool quadrupoles, const ForceOutput& out,
                  std::size_t i) {
  const std::size_t index = lists.selected ? lists.selected[i] : i;
  const ListRange& list = lists.ranges[index];
  const VectorView& a = out.acceleration;
  GroupTask task{
      sources, lists.words + list.begin, list, lists.groups[index], quadrupoles, a.x, a.y, a.z, out.potential, out.add};
  task.targets = sources.group_particles();
  return task;
}

}  // namespace

void evaluate_lists(const Stream&, const ForceLaw& law, bool quadrupoles, const SourceView& sources,
                    const ListView& lists, const ForceOutput& out) {
  const ForceKernels& kernels = force_kernels();
  const GroupParameters k = kernels.centred(make_pair_parameters(law));
#pragma omp parallel for schedule(dynamic, 2)
  for (std::size_t i = 0; i < lists.count; ++i) kernels.evaluate_group(k, task_of(sources, lists, quadrupoles, out, i));
}

void direct_sum(const Stream&, const ForceLaw& law, const DirectSet& set, const ForceOutput& out) {
  const PairParameters k = make_pair_parameters(law);
  const ForceKernels& kernels = force_kernels();
  constexpr std::uint32_t kRun = 128;  // targets of one task
  const std::uint32_t runs = (set.count + kRun - 1) / kRun;
#pragma omp parallel for schedule(dynamic, 1) if (runs > 1)
  for (std::uint32_t run = 0; run < runs; ++run) {
    const std::uint32_t skip = run * kRun;
    const DirectTask task{set.particles,
                          set.n,
                          set.first + skip,
                          std::min(kRun, set.count - skip),
                          out.acceleration.x + skip,
                          out.acceleration.y + skip,
                          out.acceleration.z + skip,
                          out.potential ? out.potential + skip : nullptr};
    kernels.direct(k, task);
  }
}

}  // namespace maki
