// The long-range force of a periodic box on a mesh: assignment, Poisson solve with the optimal influence function,
// interpolation (Hockney & Eastwood 1988, chapters 5 and 8). docs/design.md, "Force split".
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/force/split.hpp"
#include "kernels/mesh/mass_unit.hpp"
#include "kernels/particles/types.hpp"

namespace maki {

// A box of cells of a periodic mesh, one rank's part or all of it: along each axis the cells origin, ...,
// origin + extent - 1, wrapped around. Cell c of the mesh is cell (c - origin) mod `cells` of the box. An axis that is
// held whole has extent = cells.
struct MeshBox {
  int cells = 0;              // of the mesh along one side
  int origin[3] = {0, 0, 0};  // in [0, cells)
  int extent[3] = {0, 0, 0};  // in [0, cells]

  static MeshBox whole(int cells) { return {cells, {0, 0, 0}, {cells, cells, cells}}; }
  std::size_t size() const {
    return static_cast<std::size_t>(extent[0]) * static_cast<std::size_t>(extent[1]) *
           static_cast<std::size_t>(extent[2]);
  }
  bool operator==(const MeshBox&) const = default;
};

enum class Gradient {
  kSpectral,   // factor i k: three backward transforms, one a component
  kFourPoint,  // factor i D(k) of 4-point differences: three backward transforms
  kAnalytic,   // derivative of the assignment's cloud: one backward transform, of the potential
};
enum class Interlacing {
  kNone,        // 1 forward transform
  kAssignment,  // two meshes, the second shifted by half a cell, combined in k-space: 2 forward transforms
  kFull,        // forces are interpolated from both meshes as well: also twice the backward transforms
};

struct MeshOptions {
  int cells = 0;  // along one side
  Assignment assignment = Assignment::kPcs;
  Gradient gradient = Gradient::kSpectral;
  Interlacing interlacing = Interlacing::kAssignment;
  int mass_bits = 0;  // of choose_mass_unit(); 0 without other sites
};

// Throws Error unless `cells` is even and at least 8.
void check_mesh_cells(int cells);
// Throws Error where options make no sense: cells < 8 or odd, r_cut below a cell, law without a split.
void check_mesh_options(const MeshOptions& options, const ForceLaw& law);

// The optimal influence function.
enum class Influence { kForce, kPotential };

// G(k) for the mesh acceleration with modes i D(k) G(k) rho(k) (kForce; D the gradient's wave vector), or the mesh
// potential with modes -G(k) rho(k) (kPotential). It minimises the mean square error over all positions against point
// particles whose long-range pair force has the Fourier transform i k 4 pi W(k r_cut) / k^2 (Hockney & Eastwood 1988,
// eq. 8-22):
//
//   G = sum_both U_n^2 D.k_n 4 pi W(k_n r_cut) / k_n^2  /  (|D|^2  sum_in U_n^2  sum_out U_n^2),   k_n = k + 2 pi m n.
//
// U is the cloud's transform. `in` are the images that assignment aliases to k, `out` those that interpolation makes of
// k, `both` those in both sets. Interlacing in assignment removes the images with odd n_x + n_y + n_z from `in`, full
// interlacing from `out` as well. (On Nyquist planes, where k and -k are one mode, the meshes are not combined: all
// images count.) The potential has D = 1. With the analytic gradient each image has its own wave vector: D.k_n becomes
// k_n^2 above, and |D|^2 sum_out U_n^2 becomes sum_out U_n^2 k_n^2 below.
//
// Values for the octant 0 <= n <= m/2, (m/2 + 1)^3 of them, last axis contiguous; wave numbers k = 2 pi n in 1 / side.
// G(0) = 0.
std::vector<float> influence_function(const MeshOptions& options, const ForceLaw& law, Influence kind);

// A part of the octant: lines [a][b] of m/2 + 1 values, a in [first[0], end[0]), b in [first[1], end[1]), with the same
// bits as in the whole. The axes are equivalent: a and b may be any two.
struct OctantLines {
  int first[2], end[2];
};
std::vector<float> influence_function(const MeshOptions& options, const ForceLaw& law, Influence kind,
                                      const OctantLines& lines);

// D along one axis, by n = 0 ... m - 1 (n above m/2 means n - m): k, or the transform of the 4-point difference; 0 at
// m/2. Unused by the analytic gradient.
std::vector<float> gradient_wave_numbers(int cells, Gradient gradient);

// Seconds of one long_range() by phase, in this order. Over many ranks, exchanges of masses count as assign, exchanges
// of forces as interpolate.
struct MeshPhases {
  double assign = 0, forward = 0, influence = 0, backward = 0, interpolate = 0;
};

// For estimates: device bytes of the meshes with their transforms, and of the tables of influence functions, one octant
// each (one for the force, and one for the potential where the gradient is not analytic).
struct MeshBytes {
  double meshes = 0, tables = 0;
};
MeshBytes mesh_bytes(const MeshOptions& options);
// Device bytes of a ParticleMesh for so many particles.
double particle_mesh_bytes(const MeshOptions& options, double particles);

class MeshStorage;
class MeshSolver;

// Particles on the device.
struct MeshParticles {
  const SourceParticle* particles;
  std::size_t n;
};

// A mesh of `cells`^3 on one rank; over many: PencilMesh (host/fft/pencil_mesh.hpp).
class ParticleMesh {
 public:
  // Throws Error as check_mesh_options() does.
  ParticleMesh(const MeshOptions& options, const ForceLaw& law);
  virtual ~ParticleMesh();
  // Whether its results have the same bits as those of PencilMesh (host/fft): on the CPU.
  static bool has_bits_of_pencils();

  // Overwrites the long-range acceleration (mass/side^2) and, where not null, potential (mass/side) of this rank's n
  // particles (n may be 0): G = 1, lengths in sides, the k = 0 mode is 0. The sum of both ranges is the periodic force.
  // The potential includes the particle's own cloud; evaluate_lists subtracts it again. `unit` is choose_mass_unit() of
  // the particles of all ranks, at any earlier time and place: it depends on their masses alone. Collective over ranks;
  // either all ranks with particles ask for the potential or none does.
  void long_range(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                  VectorView acceleration, float* potential);

  // The long-range force of `sources` at `points`, whose own masses do not count; by point. At the position of a
  // source, its own cloud contributes to the potential, as in long_range(), and a little to the force (SelfForce). Only
  // for a mesh that one rank holds whole (not PencilMesh). Waits for the device; throws Error as choose_mass_unit()
  // does.
  void long_range_at(const Stream& stream, const MeshParticles& sources, const MeshParticles& points,
                     VectorView acceleration, float* potential);

  // Measures the phases of every long_range from here on (a mark in the stream's queue between them).
  void measure_phases();
  // The phases of the last long_range; waits for it.
  MeshPhases phases() const;

  const MeshOptions& options() const;

 protected:
  ParticleMesh(const MeshOptions& options, const ForceLaw& law, std::unique_ptr<MeshStorage> storage);

 private:
  std::unique_ptr<MeshSolver> solver_;
};

}  // namespace maki
