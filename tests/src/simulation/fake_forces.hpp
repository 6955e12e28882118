// Forces with known solutions, made on the host, for tests of the integrator.
#pragma once

#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "src/simulation/integrator.hpp"
#include "tests/kernels/particles/sets.hpp"

namespace maki {

// Each range is a function of all positions (sides, relative to the middle of the box) and of the time.
class FakeForces : public ForceField {
 public:
  using Vectors = std::vector<std::array<double, 3>>;
  using Law = std::function<void(double t, const Vectors& x, const std::vector<float>& mass, Vectors& a)>;

  FakeForces(const Stream& stream, const Particles& particles, Law short_law, Law long_law = nullptr)
      : stream_(stream), particles_(particles), short_law_(std::move(short_law)), long_law_(std::move(long_law)) {}

  void evaluate(double t, Ranges ranges, bool) override {
    if (ranges != Ranges::kLong) {
      ++short_calls;
      compute(t, short_law_, short_);
    }
    if (ranges == Ranges::kShort) return;
    ++long_calls;
    compute(t, long_law_, long_);
  }
  void all_are_within(double reach_sides) override { known_reach_sides = reach_sides; }
  void measured(const StepMeasure& measure) override { known_rms = measure.rms_acceleration; }
  bool has_mesh() const override { return long_law_ != nullptr; }
  std::uint64_t total() const override { return particles_.size(); }
  const VectorArray& short_acceleration() const override { return short_; }
  const VectorArray& long_acceleration() const override { return long_; }

  double known_reach_sides = -1;  // of the last all_are_within()
  double known_rms = 0;           // of the last measured()
  int short_calls = 0;
  int long_calls = 0;

 private:
  void compute(double t, const Law& law, VectorArray& out) {
    const HostParticles host = download_particles(stream_, particles_);
    Vectors x = host.fractions, a(x.size(), {0, 0, 0});
    for (auto& v : x)
      for (double& component : v) component -= 0.5;
    law(t, x, host.masses, a);
    testing::upload_vectors(stream_, a, out);
  }

  const Stream& stream_;
  const Particles& particles_;
  Law short_law_, long_law_;
  VectorArray short_{"fake.short"}, long_{"fake.long"};
};

// a = -rate x
inline FakeForces::Law springs(double rate) {
  return [rate](double, const FakeForces::Vectors& x, const std::vector<float>&, FakeForces::Vectors& a) {
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t axis = 0; axis < 3; ++axis) a[i][axis] = -rate * x[i][axis];
  };
}

// The same acceleration for all, chosen by time.
inline FakeForces::Law uniform_field(std::function<double(double)> strength) {
  return [strength = std::move(strength)](double t, const FakeForces::Vectors&, const std::vector<float>&,
                                          FakeForces::Vectors& a) {
    for (auto& v : a) v = {strength(t), 0, 0};
  };
}

}  // namespace maki
