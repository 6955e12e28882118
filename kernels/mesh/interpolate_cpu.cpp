#include "kernels/mesh/interpolate.hpp"

#include <algorithm>

#include "kernels/mesh/cpu_loops.hpp"

namespace maki {
namespace {

// Neighbouring particles stay with one thread: they share the mesh's cache lines.
void run_in_chunks(void (*kernel)(const InterpolationJob&), const InterpolationJob& whole, std::size_t n) {
  constexpr std::size_t chunk = 4096;
#pragma omp parallel for schedule(dynamic, 4)
  for (std::size_t first = 0; first < n; first += chunk) {
    InterpolationJob job = whole;
    job.first = first;
    job.last = std::min(n, first + chunk);
    kernel(job);
  }
}

}  // namespace

void interpolate(const Stream&, Assignment cloud, const MeshView& mesh, const SourceParticle* particles, std::size_t n,
                 const InterpolationOutput& out) {
  InterpolationJob job{};
  job.mesh = mesh.values;
  job.mesh_cells = static_cast<std::uint32_t>(mesh.box.cells);
  for (int axis = 0; axis < 3; ++axis) job.box_origin[axis] = mesh.box.origin[axis];
  job.box_end = mesh.box.extent[2];
  job.box_row = mesh.row;
  job.box_lines = mesh.lines;
  job.shifted = mesh.shifted;
  job.particles = particles;
  job.factor = out.factor;
  job.add = out.add;
  job.out = out.value;
  job.gradient[0] = out.gradient.x;
  job.gradient[1] = out.gradient.y;
  job.gradient[2] = out.gradient.z;
  job.gradient_factor = out.gradient_factor * static_cast<float>(mesh.box.cells);  // weights' slopes are per cell
  const MeshKernels& kernels = mesh_kernels();
  run_in_chunks((out.gradient.x ? kernels.interpolate_gradient : kernels.interpolate)[static_cast<int>(cloud) - 2], job,
                n);
}

}  // namespace maki
