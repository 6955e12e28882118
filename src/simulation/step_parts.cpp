#include "src/simulation/step_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <initializer_list>

namespace maki {
namespace {

using model::MeasuredSteps;
using Numbers = std::array<double, sizeof(MeasuredSteps) / sizeof(double)>;

double waited(const SitesTraffic& traffic, std::initializer_list<sites::Phase> phases) {
  double sum = 0;
  for (const sites::Phase phase : phases) sum += traffic[static_cast<std::size_t>(phase)].waited;
  return sum;
}

// All ranks wait with the gateway, the first rank: its waiting time is part of the times of all ranks.
void set_apart(MeasuredSteps& mean, const MeasuredSteps& waits) {
  const auto move = [](double& from, double& to, double seconds) {
    from = std::max(0.0, from - seconds), to += seconds;
  };
  move(mean.made, mean.waited_made, waits.waited_made);
  move(mean.kept, mean.waited_kept, waits.waited_kept);
  move(mean.mesh, mean.waited_mesh, waits.waited_mesh);
}

MeasuredSteps mean_over(const Communicator& ranks, const MeasuredSteps& mine) {
  auto numbers = std::bit_cast<Numbers>(mine);
  ranks.sum(numbers);
  for (double& number : numbers) number /= ranks.size();
  return std::bit_cast<MeasuredSteps>(numbers);
}

}  // namespace

StepParts parts_of(const StepMetrics& metrics, const PhaseTimers& timers) {
  const RankRecord record = record_of(metrics, timers);
  StepParts parts;
  parts.evaluate = phase_seconds(record, "tree/evaluate");
  parts.mesh = phase_seconds(record, "mesh");
  parts.waited = metrics.gravity.let_waited_seconds;
  const double known = parts.evaluate + parts.mesh + parts.waited + phase_seconds(record, "energy");
  parts.rest = std::max(0.0, metrics.seconds - known);
  return parts;
}

void PartSums::step(const StepMetrics& metrics, const PhaseTimers& timers) {
  if (metrics.step == 0) return;
  const StepParts parts = parts_of(metrics, timers);
  const bool made = metrics.gravity.rebuilt;
  if (made && first_made_ == 0) {
    first_made_ = metrics.seconds;
    return;
  }
  (made ? sums_.made_steps : sums_.kept_steps) += 1;
  sums_.long_steps += parts.mesh > 0 ? 1 : 0;
  sums_.interactions += static_cast<double>(metrics.gravity.interactions);
  sums_.particles += static_cast<double>(metrics.own_particles);
  sums_.evaluate += parts.evaluate;
  sums_.mesh += parts.mesh;
  (made ? sums_.made : sums_.kept) += parts.rest;
  (made ? sums_.waited_made : sums_.waited_kept) += parts.waited;
  using enum sites::Phase;
  (made ? waits_of_sites_.waited_made : waits_of_sites_.waited_kept) +=
      waited(metrics.traffic, {kSums, kTrees, kParticles});
  waits_of_sites_.waited_mesh += waited(metrics.traffic, {kMesh});
}

std::string PartSums::report(const Communicator& ranks, const ModelledRun& of) const {
  MeasuredSteps mean = mean_over(ranks, sums_);
  if (!of.machine)
    return "To see modelled times of each phase beside these: maki model calibrate -o FILE, once on this machine, and "
           "run.machine = \"FILE\".\n";
  set_apart(mean, waits_of_sites_);
  std::string text = model::comparison_text(mean, of.run, *of.machine);
  if (first_made_ > 0)
    text += fmt::format(
        "Left out: the first forces, and the first step with new lists after them ({:.4f} s), which take memory from the "
        "system that later ones find.\n",
        first_made_);
  return text;
}

}  // namespace maki
