// Gravity for the integrator, with opening angle, softening and (isolated sets) box that change during a run.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>

#include "kernels/tree/opening.hpp"
#include "src/gravity/gravity.hpp"
#include "src/gravity/site_agreement.hpp"
#include "src/simulation/integrator.hpp"

namespace maki {

// Whether the heaviest particle has so much of the whole mass that coarse roots (ForceLaw::refine_root) in its force
// would be a larger error than those of all other forces.
inline bool outweighs(double heaviest, double mass) { return heaviest >= 0.5 * mass; }

// Centre of mass of all particles of all sites, from the middle of the box in sides, and its velocity.
struct SetCentre {
  double mass = 0;
  std::array<double, 3> offset{}, velocity{};
};

// Sums over particles of an isolated set that leave the middle half of its largest box.
struct Left {
  std::uint64_t count = 0;
  double kinetic = 0;                // 1/2 sum m v^2
  double nearness = 0;               // sum m / r, r the distance from the others' centre of mass in sides
  std::array<double, 3> momentum{};  // sum m v
};

// Whether the forces in a periodic box nearly cancel, as on a displaced lattice; the errors of multipoles do not
// cancel. Compares the typical force (reference_acceleration(): the rms without a few much larger ones, such as those
// of a tight pair) with G m / d^2, for the mean mass m and the mean distance d, in the same units. The factor was
// measured (bench/NOTES.md, "The opening angle"). The forces on a lone heavy particle (Gravity::has_lone_particle)
// nearly cancel as long as matter is smooth around it, however strongly it attracts the others.
inline bool forces_cancel(double typical, double mean_force) { return typical < 20 * mean_force; }

struct FieldOptions {
  const StepOptions& step_options;
  double theta_early;  // opening angle while forces nearly cancel (forces_cancel); 0: GravityOptions::theta throughout
  // Receives sentences for the log, the same on all ranks: the box has doubled, particles have left.
  std::function<void(const std::string&)> log;
};

class GravityField : public ForceField {
 public:
  // All references have to outlive this. Collective, as all calls that are not const. In a run over several sites "all
  // ranks" are those of all sites.
  GravityField(const RunContext& run, Gravity& gravity, Particles& particles, const Timeline& timeline, Frame& frame,
               const FieldOptions& options);

  // Applies the schedules of theta and softening, keeps an isolated set in its box, and evaluates the forces. Throws
  // Error where all particles have left the box, and over several sites where a particle has left the middle half
  // before the sites could agree to double the box.
  void evaluate(double t, Ranges ranges, bool want_potential) override;
  void all_are_within(double reach_sides) override { known_reach_sides_ = reach_sides; }
  void drifted(double rms_sides) override { gravity_.drifted(rms_sides); }
  void measured(const StepMeasure& measure) override {
    reference_acceleration_ = reference_acceleration(measure.rms_acceleration, measure.typical_acceleration);
  }
  void prepare_potentials() override { gravity_.know_total_mass(stream_, particles_); }
  bool has_mesh() const override { return gravity_.has_mesh(); }
  std::uint64_t total() const override { return s_.total; }
  const VectorArray& short_acceleration() const override { return gravity_.short_acceleration(); }
  const VectorArray& long_acceleration() const override { return gravity_.long_acceleration(); }

  // Particles of this rank that have left the middle half of an isolated set's largest box; they keep their velocities
  // and feel no force. Positions (length units) are those at their times, when they left.
  const EscaperRows& escapers() const { return escapers_; }

  // Sets particles aside that are not on the device. Collective; before the first evaluation.
  void begin_aside(const Snapshot& far, double t);

  // The state for a restart; to be restored, with this rank's escapers, before the first evaluation.
  const FieldState& state() const { return s_; }
  void restore(const FieldState& state, const EscaperRows& escapers);

 private:
  void apply_schedules(double t);
  void set_softening(double softening);
  // Largest distance of a particle from the middle on any axis, units of the last bit.
  struct Reach {
    std::int64_t here = 0;  // measured at this site
    double anywhere = 0;    // upper bound for all sites, for the same decision at all
  };
  Reach measure_reach(double t);
  void keep_in_box(double t);
  bool all_are_inside();
  bool softening_fits_doubled() const;
  bool bound_ones_leave();
  std::uint64_t bound_over_all(const HostParticles& out, const SetCentre& centre, bool among);
  void take_out(double t, bool from_here);
  Left sums_over_all(const HostParticles& out, const SetCentre& centre);
  SetCentre centre_of_set();
  void enlarge_box();
  void follow_centre();
  void choose_roots();
  std::uint64_t keep_aside(const HostParticles& out, double t);
  void keep_escapers(const HostParticles& out, double t);

  const Stream& stream_;
  Gravity& gravity_;
  Particles& particles_;
  const Timeline& timeline_;
  const StepOptions& step_options_;
  double theta_early_, theta_;
  bool told_of_following_ = false;
  bool refine_root_;  // where forces do not cancel
  Frame& frame_;
  std::function<void(const std::string&)> log_;
  Communicator ranks_;
  SiteAgreement& agreement_;
  std::optional<double> known_reach_sides_;  // largest distance from the middle of the next positions, if known
  FieldState s_;
  double reference_acceleration_ = 0;  // the last one known, velocity^2 / length; 0 before the first
  EscaperRows escapers_;
};

}  // namespace maki
