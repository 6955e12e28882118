#include "kernels/mesh/mesh.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/device/error.hpp"
#include "kernels/device/fft.hpp"
#include "kernels/device/timer.hpp"
#include "kernels/mesh/assign.hpp"
#include "kernels/mesh/influence.hpp"
#include "kernels/mesh/influence_pass.cuh"
#include "kernels/mesh/interpolate.hpp"

namespace maki {
namespace {

// Marks between the phases of one call; does nothing until it is switched on.
class PhaseClock {
 public:
  using Phase = double ParticleMesh::Phases::*;

  void switch_on() { clock_.emplace(); }
  void begin(const Stream& stream) {
    if (!clock_) return;
    clock_->clear();
    ends_.clear();
    begin_ = clock_->mark(stream);
  }
  void end(const Stream& stream, Phase phase) {
    if (clock_) ends_.emplace_back(phase, clock_->mark(stream));
  }
  ParticleMesh::Phases seconds() const {
    ParticleMesh::Phases sum;
    std::size_t from = begin_;
    for (const auto& [phase, mark] : ends_) {
      sum.*phase += clock_->seconds(from, mark);
      from = mark;
    }
    return sum;
  }

 private:
  std::optional<StreamClock> clock_;
  std::size_t begin_ = 0;
  std::vector<std::pair<Phase, std::size_t>> ends_;
};

// out = -d phi / dx along one axis, by the 4-point difference.
struct FourPointGradient {
  const float* potential;
  float* out;
  int m, axis;

  struct Row {
    const float *up, *down, *up2, *down2;  // rows of the neighbours
  };
  MAKI_HD const float* row(int x, int y) const {
    return potential + (static_cast<std::size_t>(wrapped(x)) * m + wrapped(y)) * (m + 2);
  }
  MAKI_HD int wrapped(int i) const { return i < 0 ? i + m : i >= m ? i - m : i; }
  MAKI_HD Row begin(int x, int y) const {
    const int dx = axis == 0, dy = axis == 1;
    return {row(x + dx, y + dy), row(x - dx, y - dy), row(x + 2 * dx, y + 2 * dy), row(x - 2 * dx, y - 2 * dy)};
  }
  MAKI_HD void at(const Row& r, int z, std::size_t i) const {
    const int dz = axis == 2;
    const float near = r.up[wrapped(z + dz)] - r.down[wrapped(z - dz)];
    const float far = r.up2[wrapped(z + 2 * dz)] - r.down2[wrapped(z - 2 * dz)];
    out[i] = static_cast<float>(m) * ((1.0f / 12.0f) * far - (2.0f / 3.0f) * near);
  }
};

void check_options(const MeshOptions& o, const ForceLaw& law) {
  if (o.cells < 8 || o.cells % 2)
    throw Error("a mesh of " + std::to_string(o.cells) + " cells a side", "it has to be even and at least 8",
                "choose an even number from 8 up");
  if (law.split == Split::kNone)
    throw Error("a mesh force without a split", "the force law leaves nothing to the mesh", "choose a split and r_cut");
  if (law.r_cut * o.cells < 1)
    throw Error("r_cut is " + std::to_string(law.r_cut * o.cells) + " mesh cells", "the mesh cannot resolve it",
                "use a finer mesh or a larger r_cut");
}

}  // namespace

struct ParticleMesh::Parts {
  Parts(const MeshOptions& o, const ForceLaw& force_law)
      : options(o), law(force_law), fft(o.cells), assigner(o.cells, o.assignment, &fft) {
    const Stream stream;
    mesh.resize(fft.size());
    if (o.gradient != Gradient::kAnalytic || o.interlacing != Interlacing::kNone) scratch.resize(fft.size());
    if (o.gradient == Gradient::kFourPoint && o.interlacing == Interlacing::kFull) difference.resize(fft.size());
    influence.upload(stream, influence_function(o, law, Influence::kForce));
    gradient.upload(stream, gradient_wave_numbers(o.cells, o.gradient));
    phases.upload(stream, half_cell_phases(o.cells));
    stream.synchronize();
  }

  bool full() const { return options.interlacing == Interlacing::kFull; }
  int outputs() const { return full() ? 2 : 1; }
  void density(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit);
  void pass(const Stream& stream, const float* table, int axis, float* out, float* out_shifted, bool last);
  void backward(const Stream& stream, float* values);
  void to_scratch(const Stream& stream, const float* table, int axis, int output, bool last);
  void potentials_in_place(const Stream& stream);
  float* potential_of(int output) { return output ? scratch.data() : mesh.data(); }
  void add_output(const Stream& stream, const float* values, int output, const SourceParticle* particles, std::size_t n,
                  float* out);
  void potential(const Stream& stream, const SourceParticle* particles, std::size_t n, float* out);
  void spectral(const Stream& stream, const SourceParticle* particles, std::size_t n, VectorView acceleration);
  void analytic(const Stream& stream, const SourceParticle* particles, std::size_t n, VectorView acceleration,
                float* potential);
  void four_point(const Stream& stream, const SourceParticle* particles, std::size_t n, VectorView acceleration);

  MeshOptions options;
  ForceLaw law;
  RealFft3d fft;
  MassAssigner assigner;
  DeviceBuffer<float> mesh{"mesh.density"};     // masses, then their modes, then potentials
  DeviceBuffer<float> scratch{"mesh.scratch"};  // the shifted mesh, then what is transformed back
  bool separate = false;                        // the two are not one spectrum yet
  DeviceBuffer<float> difference{"mesh.difference"};
  DeviceBuffer<float> influence{"mesh.influence"};
  DeviceBuffer<float> influence_potential{"mesh.influence_potential"};  // made when a potential is first asked for
  DeviceBuffer<float> gradient{"mesh.gradient"};
  DeviceBuffer<Complex> phases{"mesh.phases"};
  PhaseClock clock;
};

// Masses a cell are density / m^3, which is just what an unnormalised transform wants.
void ParticleMesh::Parts::density(const Stream& stream, const SourceParticle* particles, std::size_t n,
                                  const MassUnit& unit) {
  separate = options.interlacing != Interlacing::kNone;
  clock.begin(stream);
  assigner.assign(stream, particles, n, unit, mesh.data(), separate ? scratch.data() : nullptr);
  clock.end(stream, &Phases::assign);
  fft.forward(stream, mesh.data());
  if (separate) fft.forward(stream, scratch.data());
  clock.end(stream, &Phases::forward);
}

// Modes of one or both outputs. The first pass combines both meshes; all but the last leave their spectrum in `mesh`.
void ParticleMesh::Parts::pass(const Stream& stream, const float* table, int axis, float* out, float* out_shifted,
                               bool last) {
  const auto modes = [](float* values) { return reinterpret_cast<Complex*>(values); };
  launch_influence(stream, {modes(mesh.data()), separate ? modes(scratch.data()) : nullptr,
                            separate && !last ? modes(mesh.data()) : nullptr, modes(out), modes(out_shifted), table,
                            gradient.data(), phases.data(), options.cells, axis, full() ? 2.0f : 1.0f});
  separate = false;
  clock.end(stream, &Phases::influence);
}

void ParticleMesh::Parts::backward(const Stream& stream, float* values) {
  fft.backward(stream, values);
  clock.end(stream, &Phases::backward);
}

void ParticleMesh::Parts::to_scratch(const Stream& stream, const float* table, int axis, int output, bool last) {
  pass(stream, table, axis, output ? nullptr : scratch.data(), output ? scratch.data() : nullptr, last);
  backward(stream, scratch.data());
}

// The gradient is taken later: one pass turns the masses' modes into those of all potentials.
void ParticleMesh::Parts::potentials_in_place(const Stream& stream) {
  pass(stream, influence.data(), kPotentialAxis, mesh.data(), full() ? scratch.data() : nullptr, true);
  for (int output = 0; output < outputs(); ++output) backward(stream, potential_of(output));
}

void ParticleMesh::Parts::add_output(const Stream& stream, const float* values, int output,
                                     const SourceParticle* particles, std::size_t n, float* out) {
  interpolate(stream, options.assignment, {values, options.cells, output == 1}, particles, n,
              1.0f / static_cast<float>(outputs()), output == 1, out);
  clock.end(stream, &Phases::interpolate);
}

void ParticleMesh::Parts::potential(const Stream& stream, const SourceParticle* particles, std::size_t n, float* out) {
  if (influence_potential.empty())
    influence_potential.upload(stream, influence_function(options, law, Influence::kPotential));
  for (int output = 0; output < outputs(); ++output) {
    to_scratch(stream, influence_potential.data(), kPotentialAxis, output, false);
    add_output(stream, scratch.data(), output, particles, n, out);
  }
}

void ParticleMesh::Parts::spectral(const Stream& stream, const SourceParticle* particles, std::size_t n,
                                   VectorView acceleration) {
  float* const out[3] = {acceleration.x, acceleration.y, acceleration.z};
  for (int axis = 0; axis < 3; ++axis) {
    for (int output = 0; output < outputs(); ++output) {
      to_scratch(stream, influence.data(), axis, output, axis == 2 && output == outputs() - 1);
      add_output(stream, scratch.data(), output, particles, n, out[axis]);
    }
  }
}

void ParticleMesh::Parts::four_point(const Stream& stream, const SourceParticle* particles, std::size_t n,
                                     VectorView acceleration) {
  float* const out[3] = {acceleration.x, acceleration.y, acceleration.z};
  float* const values = full() ? difference.data() : scratch.data();
  potentials_in_place(stream);
  for (int output = 0; output < outputs(); ++output) {
    for (int axis = 0; axis < 3; ++axis) {
      launch_cells(stream, "mesh.difference", options.cells,
                   FourPointGradient{potential_of(output), values, options.cells, axis});
      clock.end(stream, &Phases::influence);
      add_output(stream, values, output, particles, n, out[axis]);
    }
  }
}

// The potential comes with it for nothing, and the acceleration is exactly minus its gradient.
void ParticleMesh::Parts::analytic(const Stream& stream, const SourceParticle* particles, std::size_t n,
                                   VectorView acceleration, float* potential) {
  const float share = 1.0f / static_cast<float>(outputs());
  potentials_in_place(stream);
  for (int output = 0; output < outputs(); ++output)
    interpolate_gradient(stream, options.assignment, {potential_of(output), options.cells, output == 1}, particles, n,
                         {acceleration, -share, potential, share, output == 1});
  clock.end(stream, &Phases::interpolate);
}

ParticleMesh::ParticleMesh(const MeshOptions& options, const ForceLaw& law) {
  check_options(options, law);
  parts_ = std::make_unique<Parts>(options, law);
}

ParticleMesh::~ParticleMesh() = default;

MassUnit ParticleMesh::mass_unit(const Stream& stream, const SourceParticle* particles, std::size_t n) const {
  return choose_mass_unit(stream, options().assignment, options().cells, particles, n);
}

void ParticleMesh::long_range(const Stream& stream, const SourceParticle* particles, std::size_t n,
                              VectorView acceleration, float* potential) {
  long_range(stream, particles, n, mass_unit(stream, particles, n), acceleration, potential);
}

void ParticleMesh::long_range(const Stream& stream, const SourceParticle* particles, std::size_t n,
                              const MassUnit& unit, VectorView acceleration, float* potential) {
  Parts& p = *parts_;
  p.density(stream, particles, n, unit);
  if (p.options.gradient == Gradient::kAnalytic) return p.analytic(stream, particles, n, acceleration, potential);
  if (potential) p.potential(stream, particles, n, potential);
  if (p.options.gradient == Gradient::kSpectral)
    p.spectral(stream, particles, n, acceleration);
  else
    p.four_point(stream, particles, n, acceleration);
}

void ParticleMesh::measure_phases() { parts_->clock.switch_on(); }
ParticleMesh::Phases ParticleMesh::phases() const { return parts_->clock.seconds(); }

std::size_t ParticleMesh::bytes() const {
  const Parts& p = *parts_;
  const std::size_t floats = p.mesh.capacity() + p.scratch.capacity() + p.difference.capacity() +
                             p.influence.capacity() + p.influence_potential.capacity() + p.gradient.capacity();
  return floats * sizeof(float) + p.phases.capacity() * sizeof(Complex) + p.fft.bytes() + p.assigner.bytes();
}

const MeshOptions& ParticleMesh::options() const { return parts_->options; }

}  // namespace maki
