#include "src/gravity/gravity.hpp"

#include <stdexcept>
#include <utility>

#include "host/measure/totals.hpp"
#include "kernels/error.hpp"
#include "kernels/force/force.hpp"
#include "kernels/measure/reductions.hpp"

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

// Work that runs beside a stream, from the fork to join(). After an exception in between, the destructor waits for the
// work, which must end before its arrays are freed.
class Fork {
 public:
  Fork(const Stream& side, const Stream& from) : side_(side) { side_.wait_for(from); }
  ~Fork() {
    if (joined_) return;
    try {
      side_.synchronize();
    } catch (const Error&) {  // the exception that led here has priority
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

// Allocates the results of a range.
void make_room(VectorArray& acceleration, DeviceBuffer<float>& potential, std::size_t n, bool want_potential) {
  acceleration.resize(n);
  if (!want_potential) potential.release();
  if (want_potential) potential.resize(n);
}

}  // namespace

Gravity::Gravity(const GravityOptions& options, PhaseTimers& timers, const Communicator& ranks,
                 SiteAgreement* agreement)
    : options_(options), timers_(timers), ranks_(ranks),
      by_itself_(agreement ? nullptr : std::make_unique<AgreementOfOne>(ranks)),
      agreement_(agreement ? *agreement : by_itself_->agreement), tree_(options, timers, ranks, agreement_),
      all_sources_(ranks) {
  check_cutoff(options);
  check_ghosts(options);
  check_sites(options, agreement_.sites().count());
  if (options.periodic && options.law.split != Split::kNone) make_mesh();
}

// Work on the mesh's stream may still use arrays of this object.
Gravity::~Gravity() {
  try {
    mesh_stream_.synchronize();
  } catch (const Error&) {  // already reported where results were waited for
  }
}

// The one place where the number of ranks and sites, and ghosts, choose the kind of mesh. On a GPU ParticleMesh rounds
// differently from PencilMesh, whose result is the same for all numbers of ranks.
void Gravity::make_mesh() {
  const PoolLane lane(kMeshLane);
  if (!tree_.has_imports() && (options_.ghost_level == 0 || ParticleMesh::has_bits_of_pencils())) {
    mesh_ = std::make_unique<ParticleMesh>(options_.mesh, options_.law);
    return;
  }
  auto pencils = std::make_unique<PencilMesh>(ranks_, options_.mesh, options_.law);
  if (tree_.sites().others() > 0) {
    site_mesh_ = std::make_unique<sites::SiteMesh>(agreement_.sites());
    pencils->set_outside(site_mesh_.get());
    pencils->measure_phases();
    mesh_of_sites_ = pencils.get();
  }
  mesh_ = std::move(pencils);
}

void Gravity::evaluate(const Stream& stream, Particles& particles, Ranges ranges, bool want_potential) {
  const bool with_tree = ranges != Ranges::kLong, with_mesh = ranges != Ranges::kShort && mesh_;
  if (with_tree) prepare_tree(stream, particles, with_mesh ? nullptr : kept_accelerations());
  const std::size_t n = particles.size();
  if (ranges != Ranges::kShort) {
    long_range_known_ = true;
    make_room(long_range_, long_potential_, n, want_potential);
  }
  if (with_tree) make_room(short_range_, short_potential_, n, want_potential);
  std::optional<Fork> fork;
  if (with_mesh) {
    fork.emplace(mesh_stream_, stream);
    begin_mesh(particles);
    if (!site_mesh_) finish_mesh(particles, want_potential);
  } else if (ranges != Ranges::kShort) {
    long_range_.fill_zero(stream);
    if (want_potential) long_potential_.fill_zero(stream);
  }
  if (with_tree) {
    const PhaseTimers::Scope scope(timers_, "tree", stream);
    const ForceOutput out{short_range_.view(), want_potential ? short_potential_.data() : nullptr};
    if (options_.direct)
      evaluate_direct(stream, particles, out);
    else
      tree_.evaluate(stream, particles, out);
    short_range_known_ = true;
    if (by_itself_) agreement_.publish();
    if (want_potential && mesh_) level_potential(stream, particles);
  }
  if (with_mesh && site_mesh_) finish_mesh(particles, want_potential);  // other sites' masses have arrived meanwhile
  if (fork) fork->join(stream);
}

void Gravity::prepare_tree(const Stream& stream, Particles& particles, VectorArray* carried) {
  if (by_itself_) agreement_.begin();
  tree_.agree_with_sites();
  if (options_.direct || !tree_.rebuild_is_due()) return;
  const PhaseTimers::Scope scope(timers_, "tree", stream);
  tree_.prepare(stream, particles, carried);
}

// The accelerations that a rebuild reorders with the particles, where only the short range is computed.
VectorArray* Gravity::kept_accelerations() {
  if (mesh_) return long_range_known_ ? &long_range_ : nullptr;
  return options_.open_by_error && short_range_known_ ? &short_range_ : nullptr;
}

// Adds the mean of the short-range potential over the box, so that the sum of both ranges has mean 0.
void Gravity::level_potential(const Stream& stream, const Particles& particles) {
  add_constant(stream, short_potential_,
               static_cast<float>(mass_of_all(stream, particles) * potential_integral(options_.law)));
}

// Summed once: masses in a periodic box do not change.
double Gravity::mass_of_all(const Stream& stream, const Particles& particles) {
  if (total_mass_) return *total_mass_;
  const double mass = over_ranks(ranks_, mass_sum(stream, particles.source.data(), particles.size()));
  return total_mass_.emplace(agreement_.sites().sum(sites::Phase::kOutput, 0, mass));
}

void Gravity::evaluate_direct(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  const PhaseTimers::Scope scope(timers_, "direct sum", stream);
  const auto mine = static_cast<std::uint32_t>(particles.size());
  const AllSources::View all = all_sources_.gather(stream, particles);
  const std::uint32_t n = all.count;
  direct_sum(stream, options_.law, {all.particles, n, all.first, mine}, out);
  direct_counts_.interactions = static_cast<std::uint64_t>(mine) * n;
  direct_counts_.mean_list = n;
  direct_counts_.longest_list = n;
}

void Gravity::know_mass_unit(const Stream& stream, const Particles& particles) {
  const std::size_t n = particles.size();
  if (!mass_unit_)
    mass_unit_ = mass_unit_of_sites(agreement_.sites(), stream, options_.mesh, particles.source.data(), n);
}

// Starts sending this site's masses to other sites, if any.
void Gravity::begin_mesh(const Particles& particles) {
  const PoolLane lane(kMeshLane);
  const PhaseTimers::Scope scope(timers_, "mesh", mesh_stream_);
  know_mass_unit(mesh_stream_, particles);
  if (!site_mesh_) return;
  site_mesh_->set_slabs(tree_.sites().slabs(), 1.0 / options_.mesh.cells);
  mesh_of_sites_->begin(mesh_stream_, particles.source.data(), particles.size(), *mass_unit_);
}

// The caller has allocated the results, on the main stream.
void Gravity::finish_mesh(const Particles& particles, bool want_potential) {
  const PoolLane lane(kMeshLane);
  const PhaseTimers::Scope scope(timers_, "mesh", mesh_stream_);
  mesh_->long_range(mesh_stream_, particles.source.data(), particles.size(), *mass_unit_, long_range_.view(),
                    want_potential ? long_potential_.data() : nullptr);
  mesh_was_used_ = true;
}

void Gravity::know_total_mass(const Stream& stream, const Particles& particles) {
  if (mesh_) mass_of_all(stream, particles);
}

bool Gravity::has_lone_particle(const Stream& stream, const Particles& particles) {
  if (!mesh_) return false;
  know_mass_unit(stream, particles);
  return mass_unit_->lone_mass > 0;
}

Gravity::MeshOfSites Gravity::take_mesh_of_sites() {
  if (!mesh_of_sites_ || !std::exchange(mesh_was_used_, false)) return {};
  const MeshPhases phases = mesh_of_sites_->phases();
  const double coded = site_mesh_->counters().encoding + site_mesh_->counters().decoding;
  return {phases.forward + phases.influence + phases.backward, coded - std::exchange(coded_, coded)};
}

void Gravity::set_long_acceleration(VectorArray acceleration) {
  long_range_ = std::move(acceleration);
  long_range_known_ = true;
}

void Gravity::release_potentials() {
  short_potential_.release();
  long_potential_.release();
}

void Gravity::set_theta(double theta) {
  options_.theta = theta;
  tree_.set_theta(theta);
}

void Gravity::refine_roots(bool yes) {
  options_.law.refine_root = yes;
  tree_.set_law(options_.law);
}

void Gravity::set_law(const ForceLaw& law) {
  options_.law = law;
  tree_.set_law(law);
}

void Gravity::particles_changed() {
  short_range_known_ = false;
  tree_.request_rebuild();
}

void Gravity::box_doubled() {
  short_range_known_ = false;
  tree_.box_doubled();
}

TreeDrifts Gravity::drifts() const {
  const double used = tree_.drift().used();
  return {used, used > 0 ? tree_.drift().length() : 0, tree_.sites().drift().length()};
}

void Gravity::set_drifts(const TreeDrifts& drifts) {
  tree_.drift().restore(drifts.ranks, drifts.ranks_next);
  tree_.sites().drift().restore(drifts.sites);
}

}  // namespace maki
