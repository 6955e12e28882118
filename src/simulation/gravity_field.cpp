#include "src/simulation/gravity_field.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "host/measure/totals.hpp"
#include "kernels/error.hpp"
#include "kernels/measure/reductions.hpp"
#include "kernels/mesh/mass_unit.hpp"
#include "kernels/particles/particles.hpp"

namespace maki {

namespace {

// Half the squared velocity of a particle, and relative to the centre of the others half the squared velocity and 1 / r
// (r in sides).
struct Flight {
  double kinetic, relative, nearness;
};

Flight flight_of(const HostParticles& out, std::size_t i, const SetCentre& centre) {
  double r2 = 0, v2 = 0, relative = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double offset = out.fractions[i][axis] - 0.5 - centre.offset[axis], v = out.momenta[i][axis];
    r2 += offset * offset;
    v2 += v * v;
    relative += (v - centre.velocity[axis]) * (v - centre.velocity[axis]);
  }
  return {0.5 * v2, 0.5 * relative, 1 / std::sqrt(r2)};
}

// 1/2 sum m v^2, sum m / r, sum m v, and the number of particles.
std::array<DoubleDouble, 6> sums_of(const HostParticles& out, const SetCentre& centre) {
  std::array<DoubleDouble, 6> sums;
  sums[5] = static_cast<double>(out.ids.size());
  for (std::size_t i = 0; i < out.ids.size(); ++i) {
    const Flight flight = flight_of(out, i, centre);
    sums[0] = sums[0] + out.masses[i] * flight.kinetic;
    sums[1] = sums[1] + out.masses[i] * flight.nearness;
    for (std::size_t axis = 0; axis < 3; ++axis)
      sums[2 + axis] = sums[2 + axis] + static_cast<double>(out.masses[i]) * out.momenta[i][axis];
  }
  return sums;
}

// Number of particles that the others' mass at their centre would pull back. `unit`: G over the side; `among`: the
// centre is that of a set with these particles in it, and each one's distance and velocity to the others' is larger.
std::uint64_t number_bound(const HostParticles& out, double unit, const SetCentre& centre, bool among) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < out.ids.size(); ++i) {
    const Flight flight = flight_of(out, i, centre);
    const double lever = among ? centre.mass / (centre.mass - out.masses[i]) : 1;
    number += flight.relative * lever * lever * lever < unit * centre.mass * flight.nearness ? 1 : 0;
  }
  return number;
}

// The sums over all ranks of all sites.
template <std::size_t n>
std::array<double, n> over_all(const Communicator& ranks, sites::Sites& sites, std::array<DoubleDouble, n> sums) {
  using Values = std::array<double, n>;
  sum_over_ranks(ranks, sums);
  Values values;
  for (std::size_t k = 0; k < n; ++k) values[k] = sums[k].value();
  return sites.joined(sites::Phase::kControl, sites.next_number(sites::Phase::kControl), values,
                      [](Values& all, const Values& one) {
                        for (std::size_t k = 0; k < n; ++k) all[k] += one[k];
                      });
}

}  // namespace

GravityField::GravityField(const RunContext& run, Gravity& gravity, Particles& particles, const Timeline& timeline,
                           Frame& frame, const FieldOptions& options)
    : stream_(run.stream), gravity_(gravity), particles_(particles), timeline_(timeline),
      step_options_(options.step_options), theta_early_(options.theta_early), theta_(gravity.options().theta),
      refine_root_(gravity.options().law.refine_root), frame_(frame), log_(options.log), ranks_(run.ranks),
      agreement_(run.agreement), s_{.softening = gravity.options().law.softening,
                                    .total = agreement_.sites().sum(sites::Phase::kOutput, 0,
                                                                    sum_of(ranks_, std::uint64_t{particles.size()}))} {
  choose_roots();
}

// Decides on refined roots for an isolated set by all of its particles, so that a resumed run chooses alike.
void GravityField::choose_roots() {
  if (frame_.periodic) return;
  const SourceParticle* particles = particles_.source.data();
  double heaviest = mass_range(stream_, particles, particles_.size()).largest;
  DoubleDouble mass = mass_sum(stream_, particles, particles_.size());
  for (const float one : escapers_.masses) heaviest = std::max(heaviest, double{one}), mass = mass + double{one};
  sites::Sites& sites = agreement_.sites();
  const double largest = sites.joined(sites::Phase::kOutput, 0, largest_of(ranks_, heaviest),
                                      [](double& all, double one) { all = std::max(all, one); });
  const double all = sites.sum(sites::Phase::kOutput, 0, over_ranks(ranks_, mass));
  gravity_.refine_roots(refine_root_ || outweighs(largest, all));
}

void GravityField::restore(const FieldState& state, const EscaperRows& escapers) {
  if (state.total != s_.total)
    throw Error("the restart is not whole",
                fmt::format("it holds {} particles, and the run had {}", s_.total, state.total),
                "resume from another one, with the restarts of all sites");
  if (state.softening != s_.softening) set_softening(state.softening);
  s_ = state;
  escapers_ = escapers;
  choose_roots();
}

void GravityField::evaluate(double t, Ranges ranges, bool want_potential) {
  if (!frame_.periodic) keep_in_box(t);
  apply_schedules(t);
  gravity_.evaluate(stream_, particles_, ranges, want_potential);
}

void GravityField::apply_schedules(double t) {
  gravity_.reference_acceleration_is(reference_acceleration_ / frame_.acceleration_unit());
  if (timeline_.is_comoving() && theta_early_ > 0) {
    const double distance = frame_.side / std::cbrt(static_cast<double>(s_.total));
    const double density = timeline_.cosmology().mean_density();
    const bool early = forces_cancel(reference_acceleration_, frame_.gravitational_constant * density * distance) ||
                       gravity_.has_lone_particle(stream_, particles_);
    gravity_.set_theta(early ? theta_early_ : theta_);
    gravity_.refine_roots(early || refine_root_);
  }
  const double softening = softening_at(step_options_, timeline_.scale_factor(t)) / frame_.side;
  if (std::fabs(softening - s_.softening) > 1e-6 * s_.softening) set_softening(softening);
}

void GravityField::set_softening(double softening) {
  gravity_.set_law(with_softening(gravity_.options().law, softening));
  s_.softening = softening;
}

GravityField::Reach GravityField::measure_reach(double t) {
  Reach reach;
  reach.here = largest_of_ranks(ranks_, largest_reach(stream_, particles_));
  const double unit = frame_.side / kSideToUnits;
  reach.anywhere = agreement_.farthest(t, unit * static_cast<double>(reach.here)) / unit;
  return reach;
}

// Uses the known bound, the same on all ranks, instead of a reduction over particles, which would make the host wait.
// Over several sites, whose sums arrive later, sites exchange the measured distances.
bool GravityField::all_are_inside() {
  constexpr double kRounding = 16;  // units
  const std::optional<double> known = std::exchange(known_reach_sides_, {});
  return known && agreement_.delay() == 0 && *known * kSideToUnits < static_cast<double>(kMiddleHalf) - kRounding;
}

// All sites make the same decision without waiting: they double early enough for all motion since their last known
// sums.
void GravityField::keep_in_box(double t) {
  if (all_are_inside()) return;
  constexpr double kFarthest = static_cast<double>(kMiddleHalf) + 0.5;
  Reach reach = measure_reach(t);
  for (bool followed = false; reach.anywhere > kFarthest; reach = measure_reach(t)) {
    const bool fits = softening_fits_doubled();
    if (fits && frame_.doublings < kMaxDoublings)
      enlarge_box();
    else if (!std::exchange(followed, true))
      follow_centre();
    else if (fits && bound_ones_leave())
      enlarge_box();
    else
      return take_out(t, reach.here > kMiddleHalf);
  }
  if (reach.here > kMiddleHalf)
    throw Error("a particle has left the middle half of the box before the sites could agree on a larger one",
                fmt::format("at time {:g}, side {:g}: it was thrown there within two steps", t, frame_.side),
                "resume with a smaller time.eta or time.max_step");
}

SetCentre GravityField::centre_of_set() {
  const CentreSums mine = centre_sums(stream_, particles_);
  const auto all = over_all<7>(ranks_, agreement_.sites(),
                               {mine.mass, mine.position[0], mine.position[1], mine.position[2], mine.momentum[0],
                                mine.momentum[1], mine.momentum[2]});
  SetCentre centre{all[0], {}, {}};
  for (std::size_t axis = 0; centre.mass > 0 && axis < 3; ++axis) {
    centre.offset[axis] = std::ldexp(all[1 + axis] / centre.mass, -24);
    centre.velocity[axis] = all[4 + axis] / centre.mass;
  }
  return centre;
}

// Moves the box towards the centre of mass where fewer particles are then outside of its middle half: it follows a set
// that moves as a whole. By whole 64ths of the side, so that cells of the tree stay cells, and by an eighth at most.
void GravityField::follow_centre() {
  if (!agreement_.sites().alone()) return;  // slabs of sites do not move with it
  using Shift = std::array<std::int32_t, 3>;
  constexpr double kSteps = 64, kMost = kSteps / 8;
  const SetCentre centre = centre_of_set();
  const auto outside = [&](const Shift& shift) {
    return sum_of(ranks_, count_beyond(stream_, particles_, shift, kMiddleHalf));
  };
  const std::uint64_t now = outside({});
  for (const double part : {1.0, 0.5, 0.25}) {
    Shift shift;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double steps = std::clamp(std::trunc(part * kSteps * centre.offset[axis]), -kMost, kMost);
      shift[axis] = static_cast<std::int32_t>(steps / kSteps * kSideToUnits);
    }
    if (shift == Shift{} || outside(shift) >= now) continue;
    shift_box(stream_, particles_, shift);
    shift_frame(frame_, shift);
    gravity_.particles_changed();
    if (!std::exchange(told_of_following_, true)) log_("The box follows the centre of the particles' mass.");
    return;
  }
}

void GravityField::enlarge_box() {
  double_box(stream_, particles_);
  double_frame(frame_);
  gravity_.box_doubled();
  agreement_.decided(static_cast<std::uint64_t>(frame_.doublings));
  log_(fmt::format("The box is now {:g} wide: a particle came near its edge.", frame_.side));
  const bool tight = step_options_.softening < kTightPair * frame_.side;
  if (tight && step_options_.softening >= kTightPair / 2 * frame_.side && !gravity_.options().direct)
    log_(note_of_tight_pairs(frame_.side));
}

bool GravityField::softening_fits_doubled() const {
  return step_options_.softening / (2 * frame_.side) * kSideToUnits >= kLeastSofteningUnits;
}

// Whether those outside of the middle half that will come back are enough to justify a larger box, in which the others
// have fewer levels of the tree and fewer digits.
bool GravityField::bound_ones_leave() {
  const bool exact = step_options_.softening >= kTightPair * 2 * frame_.side;
  const std::uint64_t one_of = exact ? 10'000 : 100;
  const SetCentre centre = centre_of_set();
  const HostParticles out = copies_beyond(stream_, particles_, kMiddleHalf);
  return bound_over_all(out, centre, true) * one_of >= s_.total;
}

std::uint64_t GravityField::bound_over_all(const HostParticles& out, const SetCentre& centre, bool among) {
  sites::Sites& sites = agreement_.sites();
  return sites.sum(sites::Phase::kControl, sites.next_number(sites::Phase::kControl),
                   sum_of(ranks_, number_bound(out, frame_.potential_unit(), centre, among)));
}

void GravityField::take_out(double t, bool from_here) {
  const std::uint64_t count = keep_aside(from_here ? set_aside(stream_, particles_, kMiddleHalf) : HostParticles{}, t);
  if (count == 0) return;  // over sites: no particle has gone as far as the bound
  gravity_.particles_changed();
  s_.total -= count;
  if (s_.total == 0)
    throw Error("all particles have left the box", fmt::format("at time {:g}, side {:g}", t, frame_.side),
                "check velocities and units of the initial conditions, or give a larger box.size");
}

void GravityField::begin_aside(const Snapshot& far, double t) {
  HostParticles out{{}, far.velocities, far.masses, far.ids};
  for (const auto& position : far.positions) {
    std::array<double, 3>& fractions = out.fractions.emplace_back();
    for (std::size_t axis = 0; axis < 3; ++axis) fractions[axis] = (position[axis] - frame_.corner[axis]) / frame_.side;
  }
  keep_aside(out, t);
  choose_roots();
}

// Sets the particles aside. Returns their number at all sites.
std::uint64_t GravityField::keep_aside(const HostParticles& out, double t) {
  const SetCentre centre = centre_of_set();  // of the others
  const Left left = sums_over_all(out, centre);
  if (left.count == 0) return 0;
  const std::uint64_t bound = bound_over_all(out, centre, false);
  keep_escapers(out, t);
  s_.escapers += left.count;
  for (std::size_t axis = 0; axis < 3; ++axis) s_.escaped_momentum[axis] += left.momentum[axis];
  s_.escaped_energy += left.kinetic - frame_.potential_unit() * centre.mass * left.nearness;
  log_(fmt::format("{} particle{} left the box and {} set aside ({} so far): they keep their velocity.{}", left.count,
                   left.count == 1 ? "" : "s", left.count == 1 ? "is" : "are", s_.escapers,
                   bound == 0 ? ""
                              : fmt::format(" Warning: {} of them would have come back: give a box.size above {:g}.",
                                            bound, frame_.side)));
  return left.count;
}

// Sums over the particles that leave, over all ranks of all sites.
Left GravityField::sums_over_all(const HostParticles& out, const SetCentre& centre) {
  const auto all = over_all(ranks_, agreement_.sites(), sums_of(out, centre));
  return {static_cast<std::uint64_t>(all[5]), all[0], all[1], {all[2], all[3], all[4]}};
}

void GravityField::keep_escapers(const HostParticles& out, double t) {
  for (const auto& fractions : out.fractions) {
    std::array<double, 3> position;
    for (std::size_t axis = 0; axis < 3; ++axis) position[axis] = frame_.corner[axis] + fractions[axis] * frame_.side;
    escapers_.positions.push_back(position);
    escapers_.times.push_back(t);
  }
  escapers_.velocities.insert(escapers_.velocities.end(), out.momenta.begin(), out.momenta.end());
  escapers_.masses.insert(escapers_.masses.end(), out.masses.begin(), out.masses.end());
  escapers_.ids.insert(escapers_.ids.end(), out.ids.begin(), out.ids.end());
}

}  // namespace maki
