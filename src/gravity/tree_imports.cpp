#include "src/gravity/tree_imports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "host/fft/particle_brick.hpp"
#include "kernels/error.hpp"

namespace maki {

RankTrees::RankTrees(const GravityOptions& options, PhaseTimers& timers, const Communicator& ranks)
    : TreeImports(timers, "export trees", "wait for trees"), ranks_(ranks),
      let_(ranks, LetOptions{.error_lengths = options.open_by_error, .compress = options.let_compression}) {
  let_.send_whole_cells(options.ghost_level);
}

void RankTrees::know_drift(std::uint64_t own_particles) {
  if (drift_.known()) return;
  drift_.begin(sum_of(ranks_, own_particles));
}

void RankTrees::begin(const Stream& stream, Octree& tree, const SourceParticle* particles, const WalkOptions& walk,
                      bool fresh) {
  if (fresh)
    let_.rebuild(stream, tree, particles, walk, static_cast<float>(drift_.use()));
  else
    let_.update(stream, tree, particles);
}

void RankTrees::report(GravityCounts& counts) const {
  const LetCounts& let = let_.counts();
  counts.let_cells = let.cells_received;
  counts.let_particles = let.particles_received;
  counts.let_bytes = let.bytes_sent;
  counts.let_messages = let.messages_sent;
  counts.let_exchange_seconds = let.exchange_seconds;
  counts.let_waited_seconds = let.waited_seconds;
}

AllSources::View AllSources::gather(const Stream& stream, const Particles& particles) {
  const Communicator& ranks = payload_.ranks();
  const std::uint64_t mine = particles.size();
  const std::vector<std::uint64_t> counts = gathered(ranks, mine);
  std::uint64_t total = 0;
  for (const std::uint64_t count : counts) total += count;
  if (total > std::numeric_limits<std::uint32_t>::max())
    throw Error("too many particles for a direct sum", std::to_string(total) + " particles, the limit is 2^32 - 1",
                "use gravity.method = \"tree\"");
  all_.resize(total);
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  std::uint64_t first = 0, own = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const auto rank = static_cast<int>(r);
    if (rank == ranks.rank()) own = first;
    in.push_back({rank, all_.data() + first, counts[r] * sizeof(SourceParticle)});
    out.push_back({rank, particles.source.data(), mine * sizeof(SourceParticle)});
    first += counts[r];
  }
  payload_.exchange(stream, out, in);
  return {all_.data(), static_cast<std::uint32_t>(total), static_cast<std::uint32_t>(own)};
}

namespace {

constexpr float kReachSkin = 0.02f;
// Factor on the waste of a step, which recurs in later steps with the same slabs, and the part of it that is noise.
// New slabs are due once the sum exceeds the cost of a rebuild (kRebuildCost).
constexpr double kWasteStays = 4, kNoise = 0.03;

// The dense middle of an isolated set is a small part of its box, the more so after the box has doubled: boundaries are
// rounded to kFinestOfIsolated (sides), and at first particles may go kFirstDriftOfSoftening softening lengths beyond
// their slab.
constexpr double kFinestOfIsolated = 0x1p-24, kFirstDriftOfSoftening = 8;

// Rounded positions suffice where the mesh carries most of the force between sites. An isolated set has its closest
// pairs where slabs meet; without rounding its forces equal those of one site within the tree's error.
LetOptions let_options(const GravityOptions& options) {
  const bool rounded = options.periodic && options.ghost_level == 0;
  return {.reach_skin = kReachSkin,
          .error_lengths = options.open_by_error,
          .compress = rounded || options.let_compression};
}

sites::SlabLimits limits_of(const GravityOptions& options, int sites) {
  sites::SlabLimits limits{.thinnest = thinnest_slab(options.law.r_cut, options.ghost_level, sites),
                           .move = options.boundary_move};
  if (!options.periodic) limits.finest = kFinestOfIsolated;
  return limits;
}

sites::Slabs slabs_at_first(int count, const GravityOptions& options, double thinnest) {
  return options.slabs.empty() ? sites::Slabs(count, thinnest) : sites::Slabs(options.slabs);
}

}  // namespace

// A slab between two others must separate them by more than the reach of forces.
double thinnest_slab(double r_cut, int ghost_level, int sites) {
  const double ghosts = ghost_level > 0 && sites > 2 ? whole_cell_margin(ghost_level) : 0;  // two separate no others
  return std::max(r_cut * (1 + kReachSkin + 2 * TreeDrift::kMostOfCutoff), r_cut * (1 + kReachSkin) + ghosts);
}

AllSites::AllSites(SiteAgreement& agreement, const GravityOptions& options, PhaseTimers& timers)
    : TreeImports(timers, "export to sites", "wait for sites"), options_(options), agreement_(agreement),
      limits_(limits_of(options, agreement.sites().count())),
      slabs_(slabs_at_first(agreement.sites().count(), options, limits_.thinnest)),
      trees_(agreement.sites(), let_options(options)),
      migration_(agreement.sites(),
                 options.periodic ? sites::SiteMigration::Reach::kNeighbours : sites::SiteMigration::Reach::kAll),
      judge_(options.reuse_tolerance) {
  trees_.send_whole_cells(options.ghost_level);
}

void AllSites::set_slabs(const sites::Slabs& slabs) {
  for (int i = 0; i < slabs.count(); ++i) {
    if (slabs.thickness(i) > limits_.thinnest - 1e-9) continue;
    throw Error(fmt::format("the slab of site {} is too thin", agreement_.sites().name(i)),
                fmt::format("it is {:.4g} of the side, and the short-range force reaches {:.4g}: r_cut with its "
                            "margins",
                            slabs.thickness(i), limits_.thinnest),
                options_.ghost_level > 0 ? "go on with run.deterministic = false"
                                         : "go on with the gravity.mesh and gravity.r_cut that the run had");
  }
  slabs_ = slabs;
}

bool AllSites::rebuild_is_wanted() {
  if (options_.fixed_reuse == 0 && judge_.pauses()) return true;
  const auto known = agreement_.known();
  if (!known || *known == judged_ || *known < rebuilt_at_) return false;
  judged_ = *known;
  const StepSums sums = agreement_.tree();
  double outgrown = 0, asked = 0;
  for (const SiteMeasures& step : agreement_.all()) outgrown += step.outgrown, asked += step.asks_rebuild;
  if (outgrown > 0) drift_.lengthen(options_.law.r_cut);
  bool wanted = outgrown > 0 || asked > 0;
  if (*known == rebuilt_at_)
    judge_.begin(sums, balanced_ || shares_work());  // sites of unequal speed have unequal shares
  else if (options_.fixed_reuse == 0 && judge_.wants_rebuild(sums, options_.theta, std::max(1, agreement_.delay())))
    wanted = true;
  if (*known > rebuilt_at_ && is_wasteful(sums.mean_list())) wanted = true;
  return wanted && (options_.fixed_reuse == 0 || !shares_work());
}

// Whether faster sites have waited for slower ones, since the rebuild, for longer than new slabs would cost.
bool AllSites::is_wasteful(double mean_list) {
  waste_ += kWasteStays * std::max(0.0, sites::waste(agreement_.works()) - kNoise) * mean_list;
  return waste_ > kRebuildCost && !settled_;
}

void AllSites::cut_slabs() {
  rebuilt_at_ = agreement_.number();
  // Times measured with other slabs do not apply to the present ones.
  if (agreement_.known() && *agreement_.known() >= cut_at_) {
    const sites::Slabs next = sites::cut(slabs_, agreement_.works(), limits_);
    settled_ = next == slabs_;
    if (!settled_) cut_at_ = rebuilt_at_;
    slabs_ = next;
  }
  if (agreement_.known()) drift_.shorten();
  for (const std::uint32_t start : slabs_.starts()) agreement_.decided(std::uint64_t{start});
  work_ = cost_ = waste_ = 0;
}

// Samples and times from before the doubling do not apply to the new slabs.
void AllSites::double_box() {
  slabs_.double_box();
  drift_.box_doubled();
  cut_at_ = agreement_.number();
}

void AllSites::migrate(const Stream& stream, Particles& particles, VectorArray* carried) {
  if (!shares_work()) return;
  if (!drift_.known()) measure_density(particles.size());
  std::array<DeviceBuffer<float>*, 3> extra{};
  if (carried) extra = {&carried->x, &carried->y, &carried->z};
  const std::span<DeviceBuffer<float>* const> arrays(extra.data(), carried ? 3 : 0);
  migration_.begin(stream, slabs_, particles, arrays, agreement_.number());
  migration_.finish(stream, particles, arrays, agreement_.number());
}

// Sets the first drift from the number of particles of all sites: once, at the start, with a round trip.
void AllSites::measure_density(std::uint64_t mine) {
  sites::Sites& sites = agreement_.sites();
  const std::uint64_t all = sites.sum(sites::Phase::kSums, 0, sum_of(sites.ranks(), mine));
  const bool soft = !options_.periodic && options_.law.softening > 0;
  drift_.begin(all, soft ? kFirstDriftOfSoftening * options_.law.softening : 1);
}

void AllSites::begin(const Stream& stream, Octree& tree, const SourceParticle* particles, const WalkOptions& walk,
                     bool fresh) {
  if (fresh)
    trees_.rebuild(stream, tree, particles, walk, {slabs_, static_cast<float>(drift_.use())}, agreement_.number());
  else
    trees_.update(stream, tree, particles, agreement_.number());
}

void AllSites::tell(const Evaluation& evaluation, std::vector<std::uint32_t> x) {
  balanced_ = evaluation.balanced;
  SiteMeasures& mine = agreement_.mine();
  mine.tree = evaluation.sums;
  mine.asks_rebuild = evaluation.asks_rebuild;
  mine.particles = static_cast<std::uint64_t>(evaluation.sums.members);
  double slowest = evaluation.seconds;
  std::array<double, 2> all = {evaluation.interactions, static_cast<double>(outgrown)};
  if (shares_work()) {  // not needed at a single site
    slowest = largest_of(agreement_.sites().ranks(), slowest);
    agreement_.sites().ranks().sum(all);
  }
  work_ += all[0];
  cost_ += options_.deterministic ? all[0] : slowest;
  mine.work = work_;
  mine.force_cost = cost_;
  mine.last_force_seconds = slowest;
  mine.outgrown = all[1];
  if (!x.empty()) agreement_.set_samples(std::move(x));
}

MassUnit mass_unit_of_sites(sites::Sites& sites, const Stream& stream, const MeshOptions& options,
                            const SourceParticle* particles, std::size_t n) {
  const Communicator& ranks = sites.ranks();
  const MassRange range = sites.joined(sites::Phase::kOutput, 0, mass_range(ranks, stream, particles, n),
                                       [](MassRange& all, const MassRange& one) { all.join(one); });
  const MassTotals totals = sites.joined(sites::Phase::kOutput, 0, mass_totals(ranks, stream, particles, n, range),
                                         [](MassTotals& sum, const MassTotals& one) {
                                           sum.range = one.range;  // the same at all
                                           sum.particles += one.particles;
                                           sum.finest_units.add(one.finest_units);
                                           sum.heaviest += one.heaviest;
                                         });
  return choose_mass_unit(options.assignment, options.cells, totals, options.mass_bits);
}

}  // namespace maki
