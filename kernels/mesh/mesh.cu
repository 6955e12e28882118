#include "kernels/mesh/mesh.hpp"

#include <string>

#include "kernels/device/fft.hpp"
#include "kernels/error.hpp"
#include "kernels/mesh/assign.hpp"
#include "kernels/mesh/four_point.cuh"
#include "kernels/mesh/mesh_solver.cuh"

namespace maki {
namespace {

class WholeMesh : public MeshStorage {
 public:
  explicit WholeMesh(const MeshOptions& o)
      : cells_(o.cells), cloud_(o.assignment), fft_(o.cells), assigner_(o.cells, o.assignment, &fft_) {
    if (o.gradient == Gradient::kFourPoint && o.interlacing == Interlacing::kFull) difference_.resize(fft_.size());
  }

  std::size_t size() const override { return fft_.size(); }
  std::size_t bytes() const override {
    return difference_.capacity() * sizeof(float) + fft_.bytes() + assigner_.bytes();
  }
  ModeBlock modes() const override { return ModeBlock::all(cells_); }
  int mode_axis(int axis) const override { return axis; }
  std::vector<float> influence(const MeshOptions& options, const ForceLaw& law, Influence kind) const override {
    return influence_function(options, law, kind);
  }
  void assign(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit, float* mesh,
              float* shifted) override {
    assigner_.assign(stream, particles, n, unit, mesh, shifted);
  }
  void forward(const Stream& stream, float* mesh) override { fft_.forward(stream, mesh); }
  void backward(const Stream& stream, float* mesh) override { fft_.backward(stream, mesh); }
  void interpolate(const Stream& stream, const float* mesh, const Target& target, const ValueOutput& out) override {
    maki::interpolate(stream, cloud_, {mesh, cells_, target.shifted}, target.particles, target.n, out);
  }
  void interpolate_gradient(const Stream& stream, const float* mesh, const Target& target,
                            const GradientOutput& out) override {
    maki::interpolate_gradient(stream, cloud_, {mesh, cells_, target.shifted}, target.particles, target.n, out);
  }
  void interpolate_difference(const Stream& stream, const float* potential, float* spare, const Target& target,
                              const GradientOutput& out, PhaseClock& clock) override {
    float* const along[3] = {out.gradient.x, out.gradient.y, out.gradient.z};
    float* const values = spare ? spare : difference_.data();
    for (int axis = 0; axis < 3; ++axis) {
      launch_cells(stream, "mesh.difference", cells_,
                   FourPointGradient<PeriodicCells>{{potential, cells_}, values, cells_, axis});
      clock.end(stream, &MeshPhases::influence);
      interpolate(stream, values, target, {along[axis], -out.gradient_factor, out.add});
      clock.end(stream, &MeshPhases::interpolate);
    }
  }

 private:
  int cells_;
  Assignment cloud_;
  RealFft3d fft_;
  MassAssigner assigner_;
  DeviceBuffer<float> difference_{"mesh.difference"};
};

}  // namespace

MeshBytes mesh_bytes(const MeshOptions& options) {
  const bool analytic = options.gradient == Gradient::kAnalytic;
  const bool difference = options.gradient == Gradient::kFourPoint && options.interlacing == Interlacing::kFull;
  const int meshes = (analytic && options.interlacing == Interlacing::kNone ? 1 : 2) + (difference ? 1 : 0);
  const double m = options.cells, octant = m / 2 + 1;
  return {sizeof(float) * meshes * m * m * (m + 2), sizeof(float) * (analytic ? 1 : 2) * octant * octant * octant};
}

double particle_mesh_bytes(const MeshOptions& options, double particles) {
  const MeshBytes bytes = mesh_bytes(options);
  return bytes.meshes + bytes.tables + assigner_bytes(options.cells, particles);
}

void check_mesh_options(const MeshOptions& o, const ForceLaw& law) {
  if (o.cells < 8 || o.cells % 2)
    throw Error("a mesh of " + std::to_string(o.cells) + " cells a side", "it has to be even and at least 8",
                "choose an even number from 8 up");
  if (law.split == Split::kNone)
    throw Error("a mesh force without a split", "the force law leaves nothing to the mesh", "choose a split and r_cut");
  if (law.r_cut * o.cells < 1)
    throw Error("r_cut is " + std::to_string(law.r_cut * o.cells) + " mesh cells", "the mesh cannot resolve it",
                "use a finer mesh or a larger r_cut");
}

struct ParticleMesh::Parts {
  MeshSolver solver;
};

ParticleMesh::ParticleMesh(const MeshOptions& options, const ForceLaw& law)
    : ParticleMesh(options, law, (check_mesh_options(options, law), std::make_unique<WholeMesh>(options))) {}
ParticleMesh::ParticleMesh(const MeshOptions& options, const ForceLaw& law, std::unique_ptr<MeshStorage> storage)
    : parts_(new Parts{MeshSolver(options, law, std::move(storage))}) {}
ParticleMesh::~ParticleMesh() = default;

void ParticleMesh::begin(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit) {
  parts_->solver.begin(stream, particles, n, unit);
}

void ParticleMesh::long_range(const Stream& stream, const SourceParticle* particles, std::size_t n,
                              VectorView acceleration, float* potential) {
  const MassUnit unit =
      choose_mass_unit(stream, options().assignment, options().cells, particles, n, options().mass_bits);
  long_range(stream, particles, n, unit, acceleration, potential);
}

void ParticleMesh::long_range(const Stream& stream, const SourceParticle* particles, std::size_t n,
                              const MassUnit& unit, VectorView acceleration, float* potential) {
  parts_->solver.long_range(stream, particles, n, unit, acceleration, potential);
}

void ParticleMesh::measure_phases() { parts_->solver.clock().switch_on(); }
MeshPhases ParticleMesh::phases() const { return parts_->solver.clock().seconds(); }
std::size_t ParticleMesh::bytes() const { return parts_->solver.bytes(); }
const MeshOptions& ParticleMesh::options() const { return parts_->solver.options(); }

}  // namespace maki
