// Gravity as the integrator sees it: with what changes along a run - opening angle, softening, an isolated set's box.
#pragma once

#include <functional>
#include <string>

#include "src/gravity/gravity.hpp"
#include "src/simulation/integrator.hpp"

namespace maki {

struct ThetaSchedule {
  double early = 0;             // opening angle above the redshift below; 0: GravityOptions::theta throughout
  double switch_redshift = 10;
};

// Particles that left an isolated set's largest box: they keep their velocities and feel nothing any more.
struct Escapers {
  std::vector<std::array<double, 3>> positions;  // when they left, length units
  std::vector<std::array<float, 3>> velocities;
  std::vector<float> masses;
  std::vector<std::uint64_t> ids;
  std::vector<double> times;                     // when that was
  double energy = 0;  // that they took along: kinetic, and potential as if all others were in the middle of the box

  std::size_t size() const { return ids.size(); }
  void append_to(Snapshot& snapshot, double time) const;  // where they are at `time`
};

class GravityField : public ForceField {
 public:
  // All references outlive this. `say` gets sentences for the log: the box has doubled, particles have left.
  GravityField(const Stream& stream, Gravity& gravity, Particles& particles, const Timeline& timeline,
               const StepOptions& steps, const ThetaSchedule& theta, Frame& frame,
               std::function<void(const std::string&)> say);

  // Throws Error where all particles have left the box.
  void short_range(double t, bool want_potential) override;
  void long_range(double t, bool want_potential) override;
  void both_ranges(double t, bool want_potential) override;
  bool has_mesh() const override { return gravity_.has_mesh(); }
  const VectorArray& short_acceleration() const override { return gravity_.short_acceleration(); }
  const VectorArray& long_acceleration() const override { return gravity_.long_acceleration(); }

  const Escapers& escapers() const { return escapers_; }

 private:
  void make_ready(double t);
  void apply_schedules(double t);
  void keep_in_box(double t);
  bool may_double() const;
  void take_out(double t);

  const Stream& stream_;
  Gravity& gravity_;
  Particles& particles_;
  const Timeline& timeline_;
  const StepOptions& steps_;
  ThetaSchedule schedule_;
  double theta_;           // below the switch
  Frame& frame_;
  std::function<void(const std::string&)> say_;
  double softening_ = 0;  // sides, of the law in use
  Escapers escapers_;
};

}  // namespace maki
