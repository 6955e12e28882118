// What a run gives out: which outputs and when, pictures for a film, snapshots.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/error.hpp"
#include "src/simulation/film.hpp"
#include "src/simulation/force_check.hpp"
#include "src/simulation/simulation.hpp"
#include "src/simulation/state_copy.hpp"

namespace maki {

Snapshot OutputState::snapshot() const {
  Snapshot set = store_particles(stream, particles, frame, header);
  escapers.append_to(set, header.time);
  return set;
}

std::shared_ptr<const ParticleSource> OutputState::copy() const { return std::make_shared<StateCopy>(*this); }

// Sorted, without repetitions, the end last. Those before the start keep their index but are left out.
std::vector<Simulation::Target> Simulation::plan_outputs() const {
  std::vector<double> times = options_.outputs;
  std::erase_if(times, [this](double time) { return time > options_.end * (1 + kSameTime); });
  if (times.size() < options_.outputs.size())
    observer_.message(fmt::format("{} outputs lie after the end of the run and are left out.",
                                  options_.outputs.size() - times.size()));
  times.push_back(options_.end);
  std::sort(times.begin(), times.end());
  const auto same = [](double a, double b) { return std::fabs(a - b) <= kSameTime * std::fabs(b); };
  times.erase(std::unique(times.begin(), times.end(), same), times.end());
  times.back() = options_.end;

  std::vector<Target> targets;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i] < header_.time && !same(times[i], header_.time)) continue;
    targets.push_back(
        {same(times[i], header_.time) ? on_timeline(header_.time) : on_timeline(times[i]), static_cast<int>(i)});
  }
  if (!resumed_from_) return targets;
  std::erase_if(targets, [this](const Target& target) { return target.t <= resumed_from_->integrator.time; });
  if (targets.front().index != static_cast<int>(resumed_from_->outputs))
    throw Error("the outputs before the restart are no longer what they were",
                fmt::format("the next one would have number {}, and the run had come to number {}",
                            targets.front().index, resumed_from_->outputs),
                "change later outputs only");
  return targets;
}

// The pictures whose moments lie in the last step. Momenta are still those by which its particles drifted, and no message
// about energies is on its way.
void Simulation::take_film() {
  const std::vector<double>& film = options_.film;
  for (; next_picture_ < film.size() && film[next_picture_] <= file_time() * (1 + kSameTime); ++next_picture_) {
    const PhaseTimers::Scope scope(timers_, "film");
    const double t = std::min(on_timeline(film[next_picture_]), integrator_->time());
    const Particles then = drifted_back(stream_, particles_, integrator_->drift_since(t));
    observer_.film(
        {static_cast<int>(next_picture_), header_at(film[next_picture_]), stream_, then, frame_, field_->escapers()});
  }
}

// Before momenta are kicked again, as take_film().
void Simulation::tell_of_drift(const StepReport& report) {
  const PhaseTimers::Scope scope(timers_, "light cones");
  const auto since = [this](double t) { return integrator_->drift_since(t); };
  observer_.drifted(
      {result_.steps, report.begin, report.t, report.long_boundary, since, stream_, particles_, frame_, header_});
}

SnapshotHeader Simulation::header_at(double file_time) const {
  SnapshotHeader header = header_;
  header.time = file_time;
  header.redshift = header.comoving ? 1 / header.time - 1 : 0;
  return header;
}

OutputState Simulation::state(int index) const {
  return {index, header_at(file_time()), stream_, particles_, frame_, field_->escapers()};
}

void Simulation::write_output(int index) {
  StepMetrics of_last;  // what is on its way is taken before other messages of its kind
  finish_energy(of_last);
  const PhaseTimers::Scope scope(timers_, "output");
  OutputState output = state(index);
  if (options_.error_targets > 0 && index >= 0) {
    const ForceError error =
        measure_force_error(stream_, particles_, *gravity_, ranks_, *sites_, options_.error_targets);
    if (error.targets > 0) output.force_error = error;
    observer_.message("Force error: " + (error.targets > 0 ? text_of(error) : "no particle was chosen, ask for more"));
  }
  observer_.output(output);
}

Snapshot Simulation::snapshot() const { return state(0).snapshot(); }

}  // namespace maki
