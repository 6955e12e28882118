// Gravity as the integrator sees it: with what changes along a run - opening angle, softening, an isolated set's box.
#pragma once

#include <functional>
#include <string>

#include "src/gravity/gravity.hpp"
#include "src/simulation/integrator.hpp"
#include "wan/sites/sites.hpp"

namespace maki {

struct ThetaSchedule {
  double early = 0;             // opening angle above the redshift below; 0: GravityOptions::theta throughout
  double switch_redshift = 10;
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

class GravityField : public ForceField {
 public:
  // All references outlive this. `say` gets sentences for the log: the box has doubled, particles have left; the same
  // on all ranks. Collective, as all else that is not const.
  GravityField(const Stream& stream, Gravity& gravity, Particles& particles, const Timeline& timeline,
               const StepOptions& steps, const ThetaSchedule& theta, Frame& frame,
               std::function<void(const std::string&)> say, const Communicator& ranks = Communicator::self(),
               sites::Sites* sites = nullptr);

  // Throws Error where all particles have left the box.
  void short_range(double t, bool want_potential) override;
  void long_range(double t, bool want_potential) override;
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
  void keep_in_box(double t);
  bool may_double() const;
  void take_out(double t);
  void keep_escapers(const HostParticles& out, double t, double others);

  const Stream& stream_;
  Gravity& gravity_;
  Particles& particles_;
  const Timeline& timeline_;
  const StepOptions& steps_;
  ThetaSchedule schedule_;
  double theta_;           // below the switch
  Frame& frame_;
  std::function<void(const std::string&)> say_;
  Communicator ranks_;
  std::uint64_t total_;   // particles of all ranks of all sites
  double softening_ = 0;  // sides, of the law in use
  Escapers escapers_;
};

}  // namespace maki
