#include "src/simulation/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "host/comm/communicator.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/error.hpp"
#include "src/simulation/stop_request.hpp"

namespace maki {

namespace {

void check_options(const SimulationOptions& options, double start, bool comoving, double side) {
  const char* name = comoving ? "scale factor" : "time";
  if (!(options.end > start))
    throw Error("the run ends before it starts", fmt::format("{} {:g} to {:g}", name, start, options.end),
                "choose a later end");
  const double softening = softening_at(options.step_options, comoving ? options.end : 1);
  const double units = softening / side * kSideToUnits;
  if (units < kLeastSofteningUnits)
    throw Error(fmt::format("a softening of {:g} is too small for a box of {:g}", softening, side),
                fmt::format("coordinates have 2^32 units to a side, and it is {:.3g} of them", units),
                fmt::format("give at least {:.3g}", kLeastSofteningUnits / kSideToUnits * side));
}

// Takes particles out of the set that are not in the middle half of the box.
Snapshot split_far(Snapshot& set, const Frame& frame) {
  Snapshot far, near;
  far.header = near.header = set.header;
  for (std::size_t i = 0; i < set.size(); ++i) {
    bool inside = true;
    for (std::size_t axis = 0; axis < 3; ++axis)
      inside = inside && std::fabs((set.positions[i][axis] - frame.corner[axis]) / frame.side - 0.5) <= 0.25;
    (inside ? near : far).append(set, i);
  }
  set = std::move(near);
  return far;
}

}  // namespace

Simulation::Simulation(const Stream& stream, Snapshot initial, const SimulationOptions& options, Timeline timeline,
                       RunObserver& observer, const RunPlace& place)
    : stream_(stream), options_(options), timeline_(std::move(timeline)), observer_(observer), ranks_(place.ranks),
      sites_(place.sites), agreement_(*sites_), energy_(initial.header.comoving) {
  s_.header = initial.header;
  s_.frame = make_frame(initial.header, options.side, options.centre);
  check_options(options_, s_.header.time, s_.header.comoving, s_.frame.side);
  s_.header.gravitational_constant = s_.frame.gravitational_constant;
  const Snapshot far = options_.begins_aside ? split_far(initial, s_.frame) : Snapshot();
  load_particles(stream_, initial, s_.frame, particles_);
  assemble();
  if (options_.begins_aside) field_->begin_aside(far, s_.header.time);
}

Simulation::Simulation(const Stream& stream, const KeptState& from, const SimulationOptions& options, Timeline timeline,
                       RunObserver& observer, const RunPlace& place)
    : stream_(stream), options_(options), timeline_(std::move(timeline)), observer_(observer), ranks_(place.ranks),
      sites_(place.sites), agreement_(*sites_), s_(from.state), resumes_(true), energy_(from.state.header.comoving) {
  check_options(options_, from.state.file_time * (1 - kSameTime), s_.header.comoving, s_.frame.side);
  if (!s_.header.comoving) s_.header.box_size = 0;
  energy_.restore(from.state.energy);
  const auto taken = [&](double moment) { return moment <= from.state.file_time * (1 + kSameTime); };
  next_picture_ = static_cast<std::size_t>(std::count_if(options_.film.begin(), options_.film.end(), taken));
  copy_from_rows(stream_, from.particles, particles_);
  assemble();
  field_->restore(from.state.field, from.escapers);
  gravity_->set_drifts(from.state.drifts);
  gravity_->set_slabs(sites::Slabs(from.state.slabs));
  if (from.particles.long_acceleration) {
    VectorArray acceleration("gravity.long");
    copy_from_rows(stream_, *from.particles.long_acceleration, acceleration);
    gravity_->set_long_acceleration(std::move(acceleration));
  }
}

void Simulation::assemble() {
  gravity_ = std::make_unique<Gravity>(options_.gravity, timers_, ranks_, &agreement_);
  const RunContext run{stream_, timers_, agreement_, ranks_};
  const FieldOptions field{options_.step_options, options_.theta_early,
                           [this](const std::string& text) { observer_.message(text); }};
  field_ = std::make_unique<GravityField>(run, *gravity_, particles_, timeline_, s_.frame, field);
  integrator_ = std::make_unique<Integrator>(run, particles_, *field_, timeline_, options_.step_options, s_.frame);
  targets_ = plan_outputs();
}

Simulation::~Simulation() = default;

double Simulation::on_timeline(double file_time) const {
  return timeline_.is_comoving() ? std::log(file_time) : file_time;
}

double Simulation::file_time() const {
  return timeline_.is_comoving() ? timeline_.scale_factor(integrator_->time()) : integrator_->time();
}

RunResult Simulation::run() {
  try {
    return run_to_end();
  } catch (const sites::SiteLost& lost) {
    if (kept_.empty()) throw;  // the run has not begun
    return leave(lost.what());
  }
}

RunResult Simulation::run_to_end() {
  begin();
  while (step()) {
  }
  // Where a site is lost during the last outputs, the others still have states for restarts.
  sites_->meet();
  return finish();
}

void Simulation::begin() {
  resumes_ ? resume() : first_forces();
  if (ended()) return;  // the restart of a run's end
  if (integrator_->time() < targets_.front().t)
    keep_state(static_cast<std::uint64_t>(targets_.front().index));
  else
    arrive();
}

void Simulation::first_forces() {
  const auto clock = WallClock::now();
  const StepReport report = integrator_->start(on_timeline(s_.header.time), options_.energy_interval > 0);
  s_.first_momentum =
      over_ranks(ranks_, momentum_sums(stream_, particles_, gravity_->short_acceleration(),
                                       gravity_->has_mesh() ? &gravity_->long_acceleration() : nullptr));
  publish_totals(*sites_, 0, {{}, s_.first_momentum});
  s_.first_momentum = collect_totals(*sites_, 0).momentum;
  s_.removed_energy = field_->state().escaped_energy;
  for (std::size_t axis = 0; axis < 3; ++axis)
    s_.first_momentum.momentum[axis] += field_->state().escaped_momentum[axis];
  record(report, seconds_since(clock), true);
  take_film();  // the observer's first file is that of the first record
}

void Simulation::check_moment(double until) const {
  if (std::isnan(on_timeline(until)))
    throw Error(fmt::format("a run cannot go to {}", until), "", "give a scale factor or a time");
}

bool Simulation::step(double until) {
  if (ended()) return false;
  check_moment(until);
  const Target target = targets_[reached_];
  const double end = std::min(target.t, on_timeline(until));
  if (!(end > integrator_->time())) return true;
  one_step(end);
  ask_observer();
  if (!within_long_step() || !s_.result.stopped_by.empty()) longest_ = {longest_[1], 0};
  if (integrator_->time() < target.t)
    after_steps(static_cast<std::uint64_t>(target.index));
  else
    arrive();
  if (s_.result.stopped_by.empty()) return !ended();
  write_output(-1);
  return false;
}

// Makes an output and then the work after steps, as momenta are synchronised by then.
void Simulation::arrive() {
  const Target target = targets_[reached_++];
  synchronise();
  write_output(target.index);
  if (reached_ == targets_.size()) {
    s_.result.stopped_by.clear();  // nothing is left to do
    restart_wanted_ = observer_.wants_last_restart();
  }
  after_steps(static_cast<std::uint64_t>(target.index) + 1);
}

void Simulation::stop(const std::string& reason) {
  if (ended()) return;
  s_.result.stopped_by = reason;
  restart_wanted_ = true;
  after_steps(static_cast<std::uint64_t>(targets_[reached_].index));
  write_output(-1);
}

void Simulation::synchronise() {
  stepping_ = true;
  integrator_->synchronise();
  stepping_ = false;
}

RunResult Simulation::so_far() const {
  RunResult result = s_.result;
  result.time = file_time();
  result.particles = field_->total();
  return result;
}

RunResult Simulation::finish() { return s_.result = so_far(); }

// Asks whether to stop, for the reason of the lowest rank with one, and whether the first rank wants a restart. All
// sites know a site's requests some steps later: a time limit has to hold for these too.
void Simulation::ask_observer() {
  std::string reason = observer_.stop_reason((1 + agreement_.delay()) * std::max(longest_[0], longest_[1]));
  const bool restart = observer_.wants_restart(s_.result.steps) && ranks_.rank() == 0;
  const auto size = static_cast<std::uint64_t>(ranks_.size());
  std::array<std::uint64_t, 4> asked = {reason.empty() ? 0 : size - static_cast<std::uint64_t>(ranks_.rank()),
                                        restart ? 1u : 0u, gravity_->shared_planes(), gravity_->unkept_ghost_lists()};
  ranks_.max(asked);
  if (asked[0] > 0) reason = broadcast_text(ranks_, reason, static_cast<int>(size - asked[0]));
  if (asked[2] > 0 && !warned_of_shared_planes_) warn_of_shared_planes();
  if (asked[3] > 0 && !warned_of_unkept_lists_) warn_of_unkept_lists();
  if (asked[0] > 0) requests_ |= reason == kStopFileReason ? kStop | kStopFile : kStop;
  requests_ &= ~kRestart;
  if (asked[1] > 0 && sites_->me() == 0) requests_ |= kRestart;
  agreement_.request(requests_);
  agreement_.has_restart(observer_.newest_restart());
  observer_.needs_restart(agreement_.common_restart());
  const std::uint64_t all = agreement_.requests();
  // Requests older than the last restart are fulfilled.
  restart_wanted_ = (all & kRestart) && agreement_.known() > restart_at_;
  if (!(all & kStop)) return;
  s_.result.stopped_by = asked[0] > 0        ? reason
                         : (all & kStopFile) ? std::string(kStopFileReason) + " of another site"
                                             : "another site";
  restart_wanted_ = true;
}

// Reports shared planes, once in a run.
void Simulation::warn_of_shared_planes() {
  warned_of_shared_planes_ = true;
  observer_.message(fmt::format(
      "Warning: by step {}, particles were further beyond their site's slab than a cell of the mesh, and masses near "
      "the boundary were rounded at each site by itself. The mesh is the same at all sites and forces are as good, but "
      "it is no longer that of one site to the last bit. Where that matters, let trees be made anew more often: a "
      "smaller gravity.reuse, or gravity.reuse_tolerance.",
      s_.result.steps));
}

// Reports lists that were not kept, once in a run.
void Simulation::warn_of_unkept_lists() {
  warned_of_unkept_lists_ = true;
  observer_.message(fmt::format(
      "Warning: by step {}, interaction lists did not fit into memory and were made in batches, in every step. The run "
      "is sound, but no longer the same to the last bit with other numbers of ranks and sites. Where that matters, run on "
      "more ranks, or with gravity.reuse = 1.",
      s_.result.steps));
}

void Simulation::one_step(double target) {
  timers_.reset();
  const auto clock = WallClock::now();
  Potentials potentials = Potentials::kNever;
  if (options_.energy_interval > 0) {
    const bool due = s_.result.steps + 1 - s_.last_energy_step >= static_cast<std::uint64_t>(options_.energy_interval);
    potentials = due ? Potentials::kAtBoundary : Potentials::kAtTarget;
  }
  stepping_ = true;
  const StepReport report = integrator_->advance(target, potentials);
  stepping_ = false;
  ++s_.result.steps;
  record(report, seconds_since(clock), report.t == target);
}

void Simulation::record(const StepReport& report, double seconds, bool at_output) {
  StepMetrics metrics;
  metrics.step = s_.result.steps;
  metrics.comoving = timeline_.is_comoving();
  metrics.time = file_time();
  metrics.dt = timeline_.physical_time(report.t - report.step, report.t);
  metrics.dlna = metrics.comoving ? report.step : 0;
  metrics.long_step_end = report.long_boundary && gravity_->has_mesh();
  if (report.step > 0) metrics.substep = ++s_.substep;
  if (report.long_boundary) s_.substep = 0;
  metrics.particles = field_->total();
  metrics.own_particles = particles_.size();
  metrics.max_acceleration = report.measure.acceleration;
  metrics.rms_acceleration = report.measure.rms_acceleration;
  metrics.rms_momentum = report.measure.rms_momentum;
  note_jump(report.measure);
  metrics.gravity = gravity_->counts();
  if (report.step > 0) {
    s_.result.rebuilds += metrics.gravity.rebuilt ? 1 : 0;
    s_.result.long_steps += report.long_boundary ? 1 : 0;
  }

  const auto clock = WallClock::now();
  finish_energy(metrics);
  if (report.step > 0) {
    take_film();
    tell_of_drift(report);
  }
  if (report.has_potential || kinetic_is_due(report)) sample_energy(metrics, report.has_potential, at_output);
  seconds += seconds_since(clock);
  timers_.collect();
  s_.elapsed += seconds;
  longest_[1] = std::max(longest_[1], seconds);
  metrics.memory_high_water = pool_report().high_water;
  metrics.seconds = seconds;
  metrics.elapsed = s_.elapsed;
  if (report.step > 0) metrics.steps_left = (on_timeline(options_.end) - report.t) / report.step;
  metrics.of_sites = record_of_sites();
  metrics.traffic = sites_->take_traffic();
  observer_.step(metrics, timers_);
}

// The known sums of the sites.
SitesRecord Simulation::record_of_sites() {
  const sites::Slabs& slabs = gravity_->slabs();
  SitesRecord record;
  record.known_step = s_.result.steps - (agreement_.number() - *agreement_.known());
  const Gravity::MeshOfSites mesh = gravity_->take_mesh_of_sites();
  record.transform_seconds = mesh.transforms;
  record.coding_seconds = mesh.coding;
  for (int i = 0; i < slabs.count(); ++i) {
    const SiteMeasures& site = agreement_.all()[static_cast<std::size_t>(i)];
    record.sites.push_back({site.last_force_seconds, static_cast<std::uint64_t>(site.tree.interactions), site.particles,
                            slabs.begin(i) / kSideToUnits, static_cast<double>(slabs.end(i)) / kSideToUnits});
  }
  return record;
}

}  // namespace maki
