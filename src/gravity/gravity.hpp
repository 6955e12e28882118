// Gravity of a particle set: tree, or tree and mesh. Owns tree, lists, meshes, accelerations; decides when to rebuild.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "host/comm/communicator.hpp"
#include "host/fft/pencil_mesh.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/particles/particles.hpp"
#include "src/gravity/gravity_options.hpp"
#include "src/gravity/site_agreement.hpp"
#include "src/gravity/tree_gravity.hpp"
#include "src/gravity/tree_imports.hpp"
#include "src/timing/phase_timers.hpp"
#include "wan/sites/site_mesh.hpp"

namespace maki {

class Gravity {
 public:
  // Over many ranks all calls are collective: each rank passes its own particles, maybe none; all other arguments are
  // the same on all ranks. Throws Error as ParticleMesh and PencilMesh do, where r_cut is too long for nearest images,
  // and for a periodic box without a split or a direct sum over several sites; std::logic_error for ghosts without a
  // tree with a cutoff, or open_by_error in a periodic box.
  // `agreement`: that of the run, which calls its begin() before and its publish() after each evaluate() of the short
  // range, in the same way at all sites; the particles are those of this site. Null, for forces outside of a run: these
  // ranks are the only site.
  // In a periodic box masses must not change between calls: their sum and unit are computed once.
  Gravity(const GravityOptions& options, PhaseTimers& timers, const Communicator& ranks = Communicator::self(),
          SiteAgreement* agreement = nullptr);
  ~Gravity();

  // Accelerations, and potentials if wanted, of every particle at its present position. After an exception no work is
  // queued any more.
  // Short range (isolated: the whole force): a rebuild puts the particles and the accelerations kept here into Morton
  // order. Over many ranks they first go to the ranks of their domains: this rank's number of particles changes.
  // Long range: zero without a mesh. A rebuild of the short range reorders long_acceleration() but not
  // long_potential(). The mesh works on a stream of its own, for which `stream` waits.
  // Both: on a GPU the mesh works while the tree is built, walked and evaluated.
  void evaluate(const Stream& stream, Particles& particles, Ranges ranges, bool want_potential);
  // Sums the mass over all sites (one round trip) before the first potential needs it.
  void know_total_mass(const Stream& stream, const Particles& particles);
  // Whether one particle of all sites outweighs the others by far (MassUnit::lone_mass). Collective the first time.
  bool has_lone_particle(const Stream& stream, const Particles& particles);
  bool has_mesh() const { return mesh_ != nullptr; }

  // G = 1, lengths in sides (kernels/particles/types.hpp); by particle, in the order of the last evaluation of the
  // short range.
  const VectorArray& short_acceleration() const { return short_range_; }
  const VectorArray& long_acceleration() const { return long_range_; }
  // Sets the long-range accelerations, by particle: those of an earlier evaluation of these. On all ranks.
  void set_long_acceleration(VectorArray acceleration);
  // Valid after a call that wanted potentials, until the next that does not. The total potential per unit mass is the
  // sum of both; in a periodic box its mean is 0.
  const DeviceBuffer<float>& short_potential() const { return short_potential_; }
  const DeviceBuffer<float>& long_potential() const { return long_potential_; }
  void release_potentials();

  void set_theta(double theta);
  void refine_roots(bool yes);                         // Newton step in reciprocal roots (ForceLaw), without a rebuild
  void set_law(const ForceLaw& law);                   // new softening (also after double_box)
  void request_rebuild() { tree_.request_rebuild(); }  // the next evaluation rebuilds
  void box_doubled();                                  // to be called after double_box(); the next evaluation rebuilds
  void particles_changed();  // to be called after a removal, or a shift of the box; the next evaluation rebuilds
  // The reference_acceleration() of all particles (mass / side^2), the same on all ranks and sites, for open_by_error.
  void reference_acceleration_is(double acceleration) { tree_.reference_acceleration_is(acceleration); }
  // States the rms distance that particles have moved since the last call (the same on all ranks and sites). Kept lists
  // lack particles that have come within r_cut since they were made; they are rebuilt before this matters.
  void drifted(double rms_sides) { tree_.drifted(rms_sides); }
  const GravityCounts& counts() const { return options_.direct ? direct_counts_ : tree_.counts(); }
  const GravityOptions& options() const { return options_; }
  // The slabs of the sites.
  const sites::Slabs& slabs() const { return tree_.sites().slabs(); }
  void set_slabs(const sites::Slabs& slabs) { tree_.sites().set_slabs(slabs); }  // before the first call above
  // Drifts that trees sent to other ranks and sites allow for, as restarts keep them; set together with the slabs.
  TreeDrifts drifts() const;
  void set_drifts(const TreeDrifts& drifts);
  // In a run over several sites, the seconds of the last mesh force that exist only because of the division among
  // sites: transforms and influence function, which every site computes for the whole mesh, and encoding of the masses
  // in messages. 0 where no mesh force was evaluated since the last call. Waits for the mesh force.
  struct MeshOfSites {
    double transforms = 0, coding = 0;
  };
  MeshOfSites take_mesh_of_sites();
  // In a run over several sites, on this rank so far: the number of SiteMesh::Counters::shared_planes.
  std::uint64_t shared_planes() const { return site_mesh_ ? site_mesh_->counters().shared_planes : 0; }
  // With ghosts (GravityOptions::ghost_level), on this rank so far: the number of evaluations whose lists should have
  // been kept and did not fit into memory.
  std::uint64_t unkept_ghost_lists() const { return tree_.unkept_ghost_lists(); }

 private:
  // The agreement for forces outside of a run; evaluate() itself calls its begin() and publish().
  struct AgreementOfOne {
    explicit AgreementOfOne(const Communicator& ranks) : sites(ranks), agreement(sites) {}
    sites::Sites sites;
    SiteAgreement agreement;
  };

  void make_mesh();
  void prepare_tree(const Stream& stream, Particles& particles, VectorArray* carried);
  VectorArray* kept_accelerations();
  void evaluate_direct(const Stream& stream, const Particles& particles, const ForceOutput& out);
  void level_potential(const Stream& stream, const Particles& particles);
  void know_mass_unit(const Stream& stream, const Particles& particles);
  void begin_mesh(const Particles& particles);
  void finish_mesh(const Particles& particles, bool want_potential);
  double mass_of_all(const Stream& stream, const Particles& particles);

  GravityOptions options_;
  PhaseTimers& timers_;
  Communicator ranks_;
  std::unique_ptr<AgreementOfOne> by_itself_;
  SiteAgreement& agreement_;
  TreeGravity tree_;
  AllSources all_sources_;                           // for the direct sum
  Stream mesh_stream_{StreamPriority::kBackground};  // the tree's many small launches must not queue behind the mesh
  std::unique_ptr<sites::SiteMesh> site_mesh_;
  std::unique_ptr<ParticleMesh> mesh_;
  PencilMesh* mesh_of_sites_ = nullptr;  // mesh_ itself, in a run over sites; else null
  bool mesh_was_used_ = false;           // since take_mesh_of_sites()
  double coded_ = 0;                     // seconds of coding by site_mesh_ until then
  std::optional<MassUnit> mass_unit_;    // of the masses that the mesh has seen
  VectorArray short_range_{"gravity.short"}, long_range_{"gravity.long"};
  bool short_range_known_ = false;    // of these particles, in their order and the present units
  bool long_range_known_ = false;     // of the long range; the same on all ranks, also on ranks without particles
  std::optional<double> total_mass_;  // of all sites, once needed
  DeviceBuffer<float> short_potential_{"gravity.short_potential"}, long_potential_{"gravity.long_potential"};
  GravityCounts direct_counts_;
};

}  // namespace maki
