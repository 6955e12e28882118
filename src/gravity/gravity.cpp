#include "src/gravity/gravity.hpp"

#include "kernels/device/error.hpp"
#include "kernels/force/force.hpp"
#include "kernels/measure/total_mass.hpp"
#include "src/gravity/tree_gravity.hpp"

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
    throw Error("the short-range force reaches too far", "r_cut is " + std::to_string(o.law.r_cut) + " of the box side, the limit is 0.25",
                "use a finer mesh (gravity.mesh) or a smaller gravity.r_cut");
}

}  // namespace

struct Gravity::Parts {
  Parts(const GravityOptions& o, PhaseTimers& t) : options(o), timers(t), tree(o, t) {
    check_cutoff(o);
    if (options.periodic && options.law.split != Split::kNone)
      mesh = std::make_unique<ParticleMesh>(options.mesh, options.law);
  }

  GravityOptions options;
  PhaseTimers& timers;
  TreeGravity tree;
  std::unique_ptr<ParticleMesh> mesh;
  VectorArray short_range{"gravity.short"}, long_range{"gravity.long"};
  DeviceBuffer<float> short_potential{"gravity.short_potential"}, long_potential{"gravity.long_potential"};
  GravityCounts direct_counts;

  void evaluate_direct(const Stream& stream, const Particles& particles, const ForceOutput& out) {
    const PhaseTimers::Scope scope(timers, "direct sum");
    const auto n = static_cast<std::uint32_t>(particles.size());
    direct_sum(stream, options.law, particles.source.data(), n, 0, n, out);
    direct_counts.interactions = static_cast<std::uint64_t>(n) * n;
    direct_counts.mean_list = n;
    direct_counts.longest_list = n;
  }
};

Gravity::Gravity(const GravityOptions& options, PhaseTimers& timers) : parts_(std::make_unique<Parts>(options, timers)) {}
Gravity::~Gravity() = default;

void Gravity::short_range(const Stream& stream, Particles& particles, bool want_potential) {
  Parts& p = *parts_;
  const PhaseTimers::Scope scope(p.timers, "tree");
  p.short_range.resize(particles.size());
  if (want_potential) p.short_potential.resize(particles.size());
  const ForceOutput out{p.short_range.view(), want_potential ? p.short_potential.data() : nullptr};
  if (p.options.direct)
    p.evaluate_direct(stream, particles, out);
  else
    p.tree.evaluate(stream, particles, p.mesh ? &p.long_range : nullptr, out);
  if (!want_potential || !p.mesh) return;
  // The mean of the short-range potential over the box, so that the sum of both ranges has mean 0.
  const double mass = total_mass(stream, particles.source.data(), particles.size());
  add_constant(stream, p.short_potential, static_cast<float>(mass * potential_integral(p.options.law)));
}

void Gravity::long_range(const Stream& stream, const Particles& particles, bool want_potential) {
  Parts& p = *parts_;
  p.long_range.resize(particles.size());
  if (want_potential) p.long_potential.resize(particles.size());
  if (!p.mesh) {
    p.long_range.fill_zero(stream);
    if (want_potential) p.long_potential.fill_zero(stream);
    return;
  }
  const PhaseTimers::Scope scope(p.timers, "mesh");
  p.mesh->long_range(stream, particles.source.data(), particles.size(), p.long_range.view(),
                     want_potential ? p.long_potential.data() : nullptr);
}

bool Gravity::has_mesh() const { return parts_->mesh != nullptr; }
const VectorArray& Gravity::short_acceleration() const { return parts_->short_range; }
const VectorArray& Gravity::long_acceleration() const { return parts_->long_range; }
const DeviceBuffer<float>& Gravity::short_potential() const { return parts_->short_potential; }
const DeviceBuffer<float>& Gravity::long_potential() const { return parts_->long_potential; }
void Gravity::set_theta(double theta) { parts_->tree.set_theta(theta); }

void Gravity::set_law(const ForceLaw& law) {
  parts_->options.law = law;
  parts_->tree.set_law(law);
}

void Gravity::request_rebuild() { parts_->tree.request_rebuild(); }

const GravityCounts& Gravity::counts() const {
  return parts_->options.direct ? parts_->direct_counts : parts_->tree.counts();
}

const GravityOptions& Gravity::options() const { return parts_->options; }

}  // namespace maki
