#include "kernels/device/launch.cuh"
#include "kernels/mesh/cloud.hpp"
#include "kernels/mesh/interpolate.hpp"

namespace maki {
namespace {

// A particle's cloud on the mesh: f(i, j, k, value) for each of its cells.
template <int S>
struct CloudOf {
  const float* mesh;
  std::uint32_t m;
  MeshPosition x, y, z;

  __device__ CloudOf(const float* values, const SourceParticle& p, std::uint32_t cells, std::uint32_t half_cells)
      : mesh(values), m(cells), x(mesh_position<S>(p.x, m, half_cells)), y(mesh_position<S>(p.y, m, half_cells)),
        z(mesh_position<S>(p.z, m, half_cells)) {}

  __device__ const float* row(int i, int j) const {
    return mesh + (static_cast<std::size_t>(wrapped(x.first + i)) * m + wrapped(y.first + j)) * (m + 2);
  }
  __device__ std::uint32_t column(int k) const { return wrapped(z.first + k); }
  __device__ std::uint32_t wrapped(std::int32_t cell) const {
    const auto side = static_cast<std::int32_t>(m);
    return static_cast<std::uint32_t>(cell < 0 ? cell + side : cell >= side ? cell - side : cell);
  }
};

template <int S>
struct GatherValue {
  const float* mesh;
  const SourceParticle* particles;
  float* out;
  std::uint32_t m, half_cells;
  float factor;
  bool add;

  __device__ void operator()(std::size_t n) const {
    const CloudOf<S> cloud(mesh, particles[n], m, half_cells);
    float wx[S], wy[S], wz[S], sum = 0;
    float_weights<S>(cloud.x.fraction, wx);
    float_weights<S>(cloud.y.fraction, wy);
    float_weights<S>(cloud.z.fraction, wz);
    for (int i = 0; i < S; ++i) {
      for (int j = 0; j < S; ++j) {
        const float* row = cloud.row(i, j);
        float along = 0;
        for (int k = 0; k < S; ++k) along += wz[k] * row[cloud.column(k)];
        sum += wx[i] * wy[j] * along;
      }
    }
    out[n] = add ? out[n] + factor * sum : factor * sum;
  }
};

template <int S>
struct GatherGradient {
  const float* mesh;
  const SourceParticle* particles;
  GradientOutput out;
  std::uint32_t m, half_cells;

  __device__ void put(float* array, std::size_t n, float value) const { array[n] = out.add ? array[n] + value : value; }

  __device__ void operator()(std::size_t n) const {
    const CloudOf<S> cloud(mesh, particles[n], m, half_cells);
    float wx[S], wy[S], wz[S], dx[S], dy[S], dz[S];
    float_weights<S>(cloud.x.fraction, wx);
    float_weights<S>(cloud.y.fraction, wy);
    float_weights<S>(cloud.z.fraction, wz);
    float_slopes<S>(cloud.x.fraction, dx);
    float_slopes<S>(cloud.y.fraction, dy);
    float_slopes<S>(cloud.z.fraction, dz);
    float value = 0, gx = 0, gy = 0, gz = 0;
    for (int i = 0; i < S; ++i) {
      for (int j = 0; j < S; ++j) {
        const float* row = cloud.row(i, j);
        float along = 0, slope = 0;
        for (int k = 0; k < S; ++k) {
          const float v = row[cloud.column(k)];
          along += wz[k] * v;
          slope += dz[k] * v;
        }
        value += wx[i] * wy[j] * along;
        gx += dx[i] * wy[j] * along;
        gy += wx[i] * dy[j] * along;
        gz += wx[i] * wy[j] * slope;
      }
    }
    const float per_side = out.gradient_factor * static_cast<float>(m);
    put(out.gradient.x, n, per_side * gx);
    put(out.gradient.y, n, per_side * gy);
    put(out.gradient.z, n, per_side * gz);
    if (out.value) put(out.value, n, out.factor * value);
  }
};

template <int S>
void gather_value(const Stream& stream, const MeshView& mesh, const SourceParticle* particles, std::size_t n,
                  float factor, bool add, float* out) {
  launch(stream, "mesh.interpolate", n,
         GatherValue<S>{mesh.values, particles, out, static_cast<std::uint32_t>(mesh.cells), mesh.shifted ? 1u : 0u,
                        factor, add});
}

template <int S>
void gather_gradient(const Stream& stream, const MeshView& mesh, const SourceParticle* particles, std::size_t n,
                     const GradientOutput& out) {
  launch(stream, "mesh.interpolate_gradient", n,
         GatherGradient<S>{mesh.values, particles, out, static_cast<std::uint32_t>(mesh.cells), mesh.shifted ? 1u : 0u});
}

}  // namespace

void interpolate(const Stream& stream, Assignment cloud, const MeshView& mesh, const SourceParticle* particles,
                 std::size_t n, float factor, bool add, float* out) {
  if (cloud == Assignment::kCic) gather_value<2>(stream, mesh, particles, n, factor, add, out);
  if (cloud == Assignment::kTsc) gather_value<3>(stream, mesh, particles, n, factor, add, out);
  if (cloud == Assignment::kPcs) gather_value<4>(stream, mesh, particles, n, factor, add, out);
}

void interpolate_gradient(const Stream& stream, Assignment cloud, const MeshView& mesh, const SourceParticle* particles,
                          std::size_t n, const GradientOutput& out) {
  if (cloud == Assignment::kCic) gather_gradient<2>(stream, mesh, particles, n, out);
  if (cloud == Assignment::kTsc) gather_gradient<3>(stream, mesh, particles, n, out);
  if (cloud == Assignment::kPcs) gather_gradient<4>(stream, mesh, particles, n, out);
}

}  // namespace maki
