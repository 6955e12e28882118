// Gravity as the integrator sees it: with what changes along a run - opening angle, softening, an isolated set's box.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "src/gravity/gravity.hpp"
#include "src/gravity/site_agreement.hpp"
#include "src/simulation/integrator.hpp"

namespace maki {

struct ThetaSchedule {
  double early = 0;  // opening angle above the redshift below; 0: GravityOptions::theta throughout
  double switch_redshift = 10;
};

// Sums over particles that leave the largest box.
struct Left {
  std::uint64_t count = 0;
  double kinetic = 0;   // 1/2 sum m v^2
  double nearness = 0;  // sum m / r, r from the middle in sides
  double others = 0;    // mass of those that stay
};

// Particles of this rank that left an isolated set's largest box: they keep their velocities and feel nothing any more.
// `positions` (length units) are those of the moment when they left, `times`.
struct Escapers : EscaperRows {
  // Of all ranks: how many, and the energy that they took along, which is kinetic and potential as if all others were
  // in the middle of the box.
  std::uint64_t total = 0;
  double energy = 0;

  void append_to(Snapshot& snapshot, double time) const;  // where they are at `time`
};

struct FieldOptions {
  const StepOptions& steps;
  ThetaSchedule theta;
  // Gets sentences for the log, the same on all ranks: the box has doubled, particles have left.
  std::function<void(const std::string&)> say;
};

class GravityField : public ForceField {
 public:
  // All references outlive this. Collective, as all else that is not const. In a run over several sites what is said of
  // all ranks is of all sites' ranks.
  GravityField(const RunContext& run, Gravity& gravity, Particles& particles, const Timeline& timeline, Frame& frame,
               const FieldOptions& options);

  // Throws Error where all particles have left the box, and over several sites where one has come beyond its middle
  // half before they could know.
  void short_range(double t, bool want_potential) override;
  void long_range(double t, bool want_potential) override;
  void all_are_within(double reach) override { known_reach_ = reach; }
  void prepare_potentials() override { gravity_.know_total_mass(stream_, particles_); }
  void both_ranges(double t, bool want_potential) override;
  bool has_mesh() const override { return gravity_.has_mesh(); }
  std::uint64_t total() const override { return total_; }
  const VectorArray& short_acceleration() const override { return gravity_.short_acceleration(); }
  const VectorArray& long_acceleration() const override { return gravity_.long_acceleration(); }

  const Escapers& escapers() const { return escapers_; }

  // What a restart keeps, and this rank's escapers; to be restored before the first call for forces.
  FieldState state() const;
  void restore(const FieldState& state, const EscaperRows& escapers);

 private:
  void make_ready(double t);
  void apply_schedules(double t);
  void set_softening(double softening);
  // How far from the middle the furthest particle is on any axis, units of the last bit: of this site, and what may
  // have been reached by what all sites know, which decides.
  struct Reach {
    std::int64_t here = 0;
    double anywhere = 0;
  };
  Reach measure_reach(double t);
  void keep_in_box(double t);
  bool all_are_inside();
  bool may_double() const;
  void take_out(double t, bool from_here);
  Left sums_over_all(const HostParticles& out);
  void keep_escapers(const HostParticles& out, double t);

  const Stream& stream_;
  Gravity& gravity_;
  Particles& particles_;
  const Timeline& timeline_;
  const StepOptions& steps_;
  ThetaSchedule schedule_;
  double theta_;  // below the switch
  Frame& frame_;
  std::function<void(const std::string&)> say_;
  Communicator ranks_;
  SiteAgreement& agreement_;
  std::optional<double> known_reach_;  // sides: of the positions to come, from those who know
  std::uint64_t total_;                // particles of all ranks of all sites
  double softening_ = 0;               // sides, of the law in use
  Escapers escapers_;
};

}  // namespace maki
