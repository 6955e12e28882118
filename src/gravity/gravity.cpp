#include "src/gravity/gravity.hpp"

#include <optional>
#include <stdexcept>
#include <utility>

#include "host/comm/exact_sum.hpp"
#include "host/fft/pencil_mesh.hpp"
#include "kernels/error.hpp"
#include "kernels/force/force.hpp"
#include "kernels/measure/gravity_sums.hpp"
#include "src/gravity/all_ranks.hpp"
#include "src/gravity/all_sites.hpp"
#include "src/gravity/tree_gravity.hpp"
#include "wan/sites/site_mesh.hpp"

namespace maki {
namespace {

// Groups of a periodic box span up to a quarter of it; beyond that the nearest image of a source would not be the
// same for all members.
void check_cutoff(const GravityOptions& o) {
  if (!o.periodic) return;
  if (o.law.split == Split::kNone)
    throw Error("a periodic box needs the force split between tree and mesh", "gravity.split is none",
                "choose gravity.split = \"polynomial\"");
  if (o.law.r_cut >= 0.25f)
    throw Error("the short-range force reaches too far",
                "r_cut is " + std::to_string(o.law.r_cut) + " of the box side, the limit is 0.25",
                "use a finer mesh (gravity.mesh) or a smaller gravity.r_cut");
}

void check_ghosts(const GravityOptions& o) {
  if (o.ghost_level > 0 && (!o.periodic || o.direct)) throw std::logic_error("ghosts are for trees with a cutoff");
  if (o.open_by_error && o.periodic) throw std::logic_error("cells open by estimated error in isolated sets alone");
}

void check_sites(const GravityOptions& o, int sites) {
  if (o.direct && sites > 1)
    throw Error("a run over several sites needs the tree", "gravity.method is direct",
                "choose gravity.method = \"tree\", or run it at one site");
}

}  // namespace

// Agreement for forces outside of a run: begun and published in each evaluation.
struct AgreementOfOne {
  explicit AgreementOfOne(const Communicator& ranks) : sites(ranks), agreement(sites) {}
  sites::Sites sites;
  SiteAgreement agreement;
};

struct Gravity::Parts {
  Parts(const GravityOptions& o, PhaseTimers& t, const Communicator& r, SiteAgreement* s)
      : options(o), timers(t), ranks(r), by_itself(s ? nullptr : std::make_unique<AgreementOfOne>(r)),
        agreement(s ? *s : by_itself->agreement), tree(o, t, r, agreement), all_sources(r) {
    check_cutoff(o);
    check_ghosts(o);
    check_sites(o, agreement.sites().count());
    if (options.periodic && options.law.split != Split::kNone) make_mesh();
  }

  // The one place where the number of ranks and sites, and ghosts, choose the kind of mesh: ParticleMesh transforms in
  // other roundings than PencilMesh, which has one result for all numbers of ranks.
  void make_mesh() {
    const PoolLane lane(kMeshLane);
    const bool one_site = agreement.sites().alone();
    if (one_site && ranks.size() == 1 && options.ghost_level == 0) {
      mesh = std::make_unique<ParticleMesh>(options.mesh, options.law);
      return;
    }
    auto pencils = std::make_unique<PencilMesh>(ranks, options.mesh, options.law);
    if (!one_site) {
      site_mesh = std::make_unique<sites::SiteMesh>(agreement.sites());
      pencils->set_outside(site_mesh.get());
      pencils->measure_phases();
      mesh_of_sites = pencils.get();
    }
    mesh = std::move(pencils);
  }

  GravityOptions options;
  PhaseTimers& timers;
  Communicator ranks;
  std::unique_ptr<AgreementOfOne> by_itself;
  SiteAgreement& agreement;
  TreeGravity tree;
  AllSources all_sources;                           // for the direct sum
  Stream mesh_stream{StreamPriority::kBackground};  // the tree's many small launches are not to queue behind the mesh
  std::unique_ptr<sites::SiteMesh> site_mesh;
  std::unique_ptr<ParticleMesh> mesh;
  PencilMesh* mesh_of_sites = nullptr;  // the same, in a run over sites
  bool mesh_was_used = false;           // since its phases were asked for
  double coded = 0;                     // seconds of site_mesh at that time
  std::optional<MassUnit> mass_unit;    // of the masses that the mesh has seen
  VectorArray short_range{"gravity.short"}, long_range{"gravity.long"};
  bool short_range_known = false;    // of these particles, in their order and the present units
  bool long_range_known = false;     // on all ranks, also where there is nothing to know
  std::optional<double> total_mass;  // of all sites, once it was needed
  DeviceBuffer<float> short_potential{"gravity.short_potential"}, long_potential{"gravity.long_potential"};
  GravityCounts direct_counts;

  // Work on the mesh's stream may still use arrays that go with this.
  ~Parts() {
    try {
      mesh_stream.synchronize();
    } catch (const Error&) {  // it has been told where the results were waited for
    }
  }

  void prepare(const Stream& stream, Particles& particles, VectorArray* carried);
  // The accelerations that the particles keep on a rebuild, where only the short range is computed.
  VectorArray* kept_accelerations() {
    if (mesh) return long_range_known ? &long_range : nullptr;
    return options.open_by_error && short_range_known ? &short_range : nullptr;
  }
  // Makes or releases the array of potentials.
  static void make_room(DeviceBuffer<float>& potential, bool wanted, std::size_t n) {
    if (!wanted) potential.release();
    if (wanted) potential.resize(n);
  }
  void evaluate_short(const Stream& stream, const Particles& particles, bool want_potential);
  void evaluate_direct(const Stream& stream, const Particles& particles, const ForceOutput& out);
  void know_mass_unit(const Stream& stream, const Particles& particles);
  void begin_mesh(const Stream& stream, const Particles& particles);
  void finish_mesh(const Stream& stream, const Particles& particles, bool want_potential);
  double mass_of_all(const Stream& stream, const Particles& particles);
};

namespace {

// Work that runs beside a stream, from the fork to join(). Left in between, by an exception, it is waited for: it must
// not go on while its arrays go.
class Fork {
 public:
  Fork(const Stream& side, const Stream& from) : side_(side) { side_.wait_for(from); }
  ~Fork() {
    if (joined_) return;
    try {
      side_.synchronize();
    } catch (const Error&) {  // the exception that brought us here speaks first
    }
  }
  void join(const Stream& into) {
    into.wait_for(side_);
    joined_ = true;
  }

 private:
  const Stream& side_;
  bool joined_ = false;
};

}  // namespace

void Gravity::Parts::prepare(const Stream& stream, Particles& particles, VectorArray* carried) {
  if (by_itself) agreement.begin();
  tree.agree_with_sites();
  if (options.direct || !tree.rebuild_is_due()) return;
  const PhaseTimers::Scope scope(timers, "tree", stream);
  tree.prepare(stream, particles, carried);
}

void Gravity::Parts::evaluate_short(const Stream& stream, const Particles& particles, bool want_potential) {
  const PhaseTimers::Scope scope(timers, "tree", stream);
  short_range.resize(particles.size());
  make_room(short_potential, want_potential, particles.size());
  const ForceOutput out{short_range.view(), want_potential ? short_potential.data() : nullptr};
  if (options.direct)
    evaluate_direct(stream, particles, out);
  else
    tree.evaluate(stream, particles, out);
  short_range_known = true;
  if (by_itself) agreement.publish();
  if (!want_potential || !mesh) return;
  // The mean of the short-range potential over the box, so that the sum of both ranges has mean 0.
  add_constant(stream, short_potential,
               static_cast<float>(mass_of_all(stream, particles) * potential_integral(options.law)));
}

// Asked for once: masses in a periodic box do not change.
double Gravity::Parts::mass_of_all(const Stream& stream, const Particles& particles) {
  if (total_mass) return *total_mass;
  DoubleDouble mass = mass_sum(stream, particles.source.data(), particles.size());
  exact_sum(ranks, std::span(&mass, 1));
  return total_mass.emplace(agreement.sites().sum(sites::Phase::kOutput, 0, mass.value()));
}

void Gravity::Parts::evaluate_direct(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  const PhaseTimers::Scope scope(timers, "direct sum", stream);
  const auto mine = static_cast<std::uint32_t>(particles.size());
  const AllSources::View all = all_sources.gather(stream, particles);
  const std::uint32_t n = all.count;
  direct_sum(stream, options.law, {all.particles, n, all.first, mine}, out);
  direct_counts.interactions = static_cast<std::uint64_t>(mine) * n;
  direct_counts.mean_list = n;
  direct_counts.longest_list = n;
}

void Gravity::Parts::know_mass_unit(const Stream& stream, const Particles& particles) {
  const std::size_t n = particles.size();
  if (!mass_unit) mass_unit = mass_unit_of_sites(agreement.sites(), stream, options.mesh, particles.source.data(), n);
}

// Where there are other sites, this one's masses go on their way to them.
void Gravity::Parts::begin_mesh(const Stream& stream, const Particles& particles) {
  const PoolLane lane(kMeshLane);
  const PhaseTimers::Scope scope(timers, "mesh", stream);
  know_mass_unit(stream, particles);
  if (site_mesh) site_mesh->set_slabs(tree.sites().slabs(), 1.0 / options.mesh.cells);
  mesh->begin(stream, particles.source.data(), particles.size(), *mass_unit);
}

// The caller has made room for the results, on the main lane.
void Gravity::Parts::finish_mesh(const Stream& stream, const Particles& particles, bool want_potential) {
  const PoolLane lane(kMeshLane);
  const PhaseTimers::Scope scope(timers, "mesh", stream);
  mesh->long_range(stream, particles.source.data(), particles.size(), *mass_unit, long_range.view(),
                   want_potential ? long_potential.data() : nullptr);
  mesh_was_used = true;
}

Gravity::Gravity(const GravityOptions& options, PhaseTimers& timers, const Communicator& ranks,
                 SiteAgreement* agreement)
    : parts_(std::make_unique<Parts>(options, timers, ranks, agreement)) {}
Gravity::~Gravity() = default;

void Gravity::short_range(const Stream& stream, Particles& particles, bool want_potential) {
  Parts& p = *parts_;
  p.prepare(stream, particles, p.kept_accelerations());
  p.evaluate_short(stream, particles, want_potential);
}

void Gravity::long_range(const Stream& stream, const Particles& particles, bool want_potential) {
  Parts& p = *parts_;
  p.long_range_known = true;
  p.long_range.resize(particles.size());
  Parts::make_room(p.long_potential, want_potential, particles.size());
  if (!p.mesh) {
    p.long_range.fill_zero(stream);
    if (want_potential) p.long_potential.fill_zero(stream);
    return;
  }
  Fork fork(p.mesh_stream, stream);
  p.begin_mesh(p.mesh_stream, particles);
  p.finish_mesh(p.mesh_stream, particles, want_potential);
  fork.join(stream);
}

void Gravity::both_ranges(const Stream& stream, Particles& particles, bool want_potential) {
  Parts& p = *parts_;
  if (!p.mesh) {
    short_range(stream, particles, want_potential);
    return long_range(stream, particles, want_potential);
  }
  p.prepare(stream, particles, nullptr);
  p.long_range_known = true;
  p.long_range.resize(particles.size());
  Parts::make_room(p.long_potential, want_potential, particles.size());
  Fork fork(p.mesh_stream, stream);
  p.begin_mesh(p.mesh_stream, particles);
  if (!p.site_mesh) p.finish_mesh(p.mesh_stream, particles, want_potential);
  p.evaluate_short(stream, particles, want_potential);
  if (p.site_mesh) p.finish_mesh(p.mesh_stream, particles, want_potential);  // other sites' masses came meanwhile
  fork.join(stream);
}

void Gravity::know_total_mass(const Stream& stream, const Particles& particles) {
  if (parts_->mesh) parts_->mass_of_all(stream, particles);
}

Gravity::MeshOfSites Gravity::take_mesh_of_sites() {
  Parts& p = *parts_;
  if (!p.mesh_of_sites || !std::exchange(p.mesh_was_used, false)) return {};
  const MeshPhases phases = p.mesh_of_sites->phases();
  const double coded = p.site_mesh->counters().encoding + p.site_mesh->counters().decoding;
  return {phases.forward + phases.influence + phases.backward, coded - std::exchange(p.coded, coded)};
}

std::uint64_t Gravity::shared_planes() const {
  return parts_->site_mesh ? parts_->site_mesh->counters().shared_planes : 0;
}

std::uint64_t Gravity::unkept_ghost_lists() const { return parts_->tree.unkept_ghost_lists(); }

bool Gravity::has_lone_particle(const Stream& stream, const Particles& particles) {
  if (!has_mesh()) return false;
  parts_->know_mass_unit(stream, particles);
  return parts_->mass_unit->lone_mass > 0;
}

bool Gravity::has_mesh() const { return parts_->mesh != nullptr; }
const VectorArray& Gravity::short_acceleration() const { return parts_->short_range; }
const VectorArray& Gravity::long_acceleration() const { return parts_->long_range; }
const DeviceBuffer<float>& Gravity::short_potential() const { return parts_->short_potential; }
const DeviceBuffer<float>& Gravity::long_potential() const { return parts_->long_potential; }
void Gravity::release_potentials() {
  parts_->short_potential.release();
  parts_->long_potential.release();
}

void Gravity::set_theta(double theta) { parts_->tree.set_theta(theta); }

void Gravity::refine_roots(bool yes) {
  parts_->options.law.refine_root = yes;
  parts_->tree.set_law(parts_->options.law);
}

void Gravity::set_law(const ForceLaw& law) {
  parts_->options.law = law;
  parts_->tree.set_law(law);
}

void Gravity::request_rebuild() { parts_->tree.request_rebuild(); }
void Gravity::drifted(double rms_sides) { parts_->tree.drifted(rms_sides); }

void Gravity::rms_acceleration_is(double rms) { parts_->tree.rms_acceleration_is(rms); }
void Gravity::particles_removed() {
  parts_->short_range_known = false;
  parts_->tree.request_rebuild();
}
void Gravity::box_doubled() {
  parts_->short_range_known = false;
  parts_->tree.box_doubled();
}

const GravityCounts& Gravity::counts() const {
  return parts_->options.direct ? parts_->direct_counts : parts_->tree.counts();
}

const GravityOptions& Gravity::options() const { return parts_->options; }

const sites::Slabs& Gravity::slabs() const { return parts_->tree.sites().slabs(); }
TreeDrifts Gravity::drifts() const {
  TreeGravity& tree = parts_->tree;
  const double used = tree.drift().used();
  return {used, used > 0 ? tree.drift().length() : 0, tree.sites().drift().length()};
}
void Gravity::set_drifts(const TreeDrifts& drifts) {
  TreeGravity& tree = parts_->tree;
  tree.drift().restore(drifts.ranks, drifts.ranks_next);
  tree.sites().drift().restore(drifts.sites);
}
void Gravity::set_slabs(const sites::Slabs& slabs) { parts_->tree.sites().set_slabs(slabs); }

}  // namespace maki
