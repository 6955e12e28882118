#include "kernels/mesh/mesh.hpp"

#include <string>

#include "kernels/device/buffer.hpp"
#include "kernels/device/error.hpp"
#include "kernels/device/fft.hpp"
#include "kernels/mesh/assign.hpp"
#include "kernels/mesh/influence.hpp"
#include "kernels/mesh/interlace.cuh"
#include "kernels/mesh/interpolate.hpp"

namespace maki {
namespace {

constexpr int kPotentialAxis = -1;

// out = i D G in along one axis, or -G in for the potential. `phases`, where not null: for the mesh on which
// particles stand half a cell further.
struct ApplyInfluence {
  const Complex* in;
  Complex* out;
  const float* influence;  // octant
  const float* gradient;   // D, one axis
  const Complex* phases;
  int m, axis;
  float nyquist_factor;  // with full interlacing the first mesh alone carries the Nyquist planes: 2, else 1

  struct Row {
    const float* influence;
    float gradient, factor;
    Complex phase;
  };
  MAKI_HD Row begin(int x, int y) const {
    const int side = m / 2 + 1, a = x < side ? x : m - x, b = y < side ? y : m - y;
    const float d = axis == 0 ? gradient[x] : axis == 1 ? gradient[y] : -1.0f;
    const Complex phase = phases ? product(phases[x], phases[y]) : Complex{1, 0};
    return {influence + (static_cast<std::size_t>(a) * side + b) * side, d,
            2 * x == m || 2 * y == m ? nyquist_factor : 1.0f, phase};
  }
  MAKI_HD void at(const Row& row, int z, std::size_t i) const {
    float g = row.influence[z] * (axis == 2 ? gradient[z] : row.gradient);
    g *= 2 * z == m ? nyquist_factor : row.factor;
    Complex value = axis < 0 ? Complex{g * in[i].re, g * in[i].im} : Complex{-g * in[i].im, g * in[i].re};
    if (phases) {
      const Complex p = product(row.phase, phases[z]);
      value = product(value, {p.re, -p.im});
    }
    out[i] = value;
  }
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
      : options(o), law(force_law), fft(o.cells), assigner(o.cells, o.assignment) {
    const Stream stream;
    mesh.resize(fft.size());
    scratch.resize(fft.size());
    if (o.gradient == Gradient::kFourPoint && o.interlacing == Interlacing::kFull) difference.resize(fft.size());
    influence.upload(stream, influence_function(o, law, Influence::kForce));
    gradient.upload(stream, gradient_wave_numbers(o.cells, o.gradient));
    phases.upload(stream, half_cell_phases(o.cells));
    stream.synchronize();
  }

  int outputs() const { return options.interlacing == Interlacing::kFull ? 2 : 1; }
  void density(const Stream& stream, const SourceParticle* particles, std::size_t n);
  void to_scratch(const Stream& stream, const float* table, int axis, int output);
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
  DeviceBuffer<float> mesh{"mesh.density"};        // masses, then their modes
  DeviceBuffer<float> scratch{"mesh.scratch"};     // the shifted mesh, then what is transformed back
  DeviceBuffer<float> difference{"mesh.difference"};
  DeviceBuffer<float> influence{"mesh.influence"};
  DeviceBuffer<float> influence_potential{"mesh.influence_potential"};  // made when a potential is first asked for
  DeviceBuffer<float> gradient{"mesh.gradient"};
  DeviceBuffer<Complex> phases{"mesh.phases"};
};

// Masses a cell are density / m^3, which is just what an unnormalised transform wants.
void ParticleMesh::Parts::density(const Stream& stream, const SourceParticle* particles, std::size_t n) {
  const bool interlaced = options.interlacing != Interlacing::kNone;
  assigner.assign(stream, particles, n, mesh.data(), interlaced ? scratch.data() : nullptr);
  fft.forward(stream, mesh.data());
  if (!interlaced) return;
  fft.forward(stream, scratch.data());
  launch_modes(stream, "mesh.combine", options.cells,
               CombineMeshes{reinterpret_cast<Complex*>(mesh.data()), reinterpret_cast<const Complex*>(scratch.data()),
                             phases.data(), options.cells});
}

void ParticleMesh::Parts::to_scratch(const Stream& stream, const float* table, int axis, int output) {
  const float nyquist = outputs() == 2 ? 2.0f : 1.0f;
  launch_modes(stream, "mesh.influence", options.cells,
               ApplyInfluence{reinterpret_cast<const Complex*>(mesh.data()), reinterpret_cast<Complex*>(scratch.data()),
                              table, gradient.data(), output ? phases.data() : nullptr, options.cells, axis, nyquist});
  fft.backward(stream, scratch.data());
}

void ParticleMesh::Parts::add_output(const Stream& stream, const float* values, int output,
                                     const SourceParticle* particles, std::size_t n, float* out) {
  interpolate(stream, options.assignment, {values, options.cells, output == 1}, particles, n,
              1.0f / static_cast<float>(outputs()), output == 1, out);
}

void ParticleMesh::Parts::potential(const Stream& stream, const SourceParticle* particles, std::size_t n, float* out) {
  if (influence_potential.empty())
    influence_potential.upload(stream, influence_function(options, law, Influence::kPotential));
  for (int output = 0; output < outputs(); ++output) {
    to_scratch(stream, influence_potential.data(), kPotentialAxis, output);
    add_output(stream, scratch.data(), output, particles, n, out);
  }
}

void ParticleMesh::Parts::spectral(const Stream& stream, const SourceParticle* particles, std::size_t n,
                                   VectorView acceleration) {
  float* const out[3] = {acceleration.x, acceleration.y, acceleration.z};
  for (int axis = 0; axis < 3; ++axis) {
    for (int output = 0; output < outputs(); ++output) {
      to_scratch(stream, influence.data(), axis, output);
      add_output(stream, scratch.data(), output, particles, n, out[axis]);
    }
  }
}

void ParticleMesh::Parts::four_point(const Stream& stream, const SourceParticle* particles, std::size_t n,
                                     VectorView acceleration) {
  float* const out[3] = {acceleration.x, acceleration.y, acceleration.z};
  for (int output = 0; output < outputs(); ++output) {
    to_scratch(stream, influence.data(), kPotentialAxis, output);
    // The modes are needed no more, but for a second output.
    float* values = difference.empty() ? mesh.data() : difference.data();
    for (int axis = 0; axis < 3; ++axis) {
      launch_cells(stream, "mesh.difference", options.cells,
                   FourPointGradient{scratch.data(), values, options.cells, axis});
      add_output(stream, values, output, particles, n, out[axis]);
    }
  }
}

// The potential comes with it for nothing, and the acceleration is exactly minus its gradient.
void ParticleMesh::Parts::analytic(const Stream& stream, const SourceParticle* particles, std::size_t n,
                                   VectorView acceleration, float* potential) {
  const float share = 1.0f / static_cast<float>(outputs());
  for (int output = 0; output < outputs(); ++output) {
    to_scratch(stream, influence.data(), kPotentialAxis, output);
    interpolate_gradient(stream, options.assignment, {scratch.data(), options.cells, output == 1}, particles, n,
                         {acceleration, -share, potential, share, output == 1});
  }
}

ParticleMesh::ParticleMesh(const MeshOptions& options, const ForceLaw& law) {
  check_options(options, law);
  parts_ = std::make_unique<Parts>(options, law);
}

ParticleMesh::~ParticleMesh() = default;

void ParticleMesh::long_range(const Stream& stream, const SourceParticle* particles, std::size_t n,
                              VectorView acceleration, float* potential) {
  Parts& p = *parts_;
  p.density(stream, particles, n);
  if (p.options.gradient == Gradient::kAnalytic) return p.analytic(stream, particles, n, acceleration, potential);
  if (potential) p.potential(stream, particles, n, potential);
  if (p.options.gradient == Gradient::kSpectral)
    p.spectral(stream, particles, n, acceleration);
  else
    p.four_point(stream, particles, n, acceleration);
}

std::size_t ParticleMesh::bytes() const {
  const Parts& p = *parts_;
  const std::size_t floats = p.mesh.capacity() + p.scratch.capacity() + p.difference.capacity() +
                             p.influence.capacity() + p.influence_potential.capacity() + p.gradient.capacity();
  return floats * sizeof(float) + p.phases.capacity() * sizeof(Complex) + p.fft.bytes() + p.assigner.bytes();
}

const MeshOptions& ParticleMesh::options() const { return parts_->options; }

}  // namespace maki
