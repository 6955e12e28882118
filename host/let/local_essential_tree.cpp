#include "host/let/local_essential_tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace maki {
namespace {

constexpr std::int64_t kSide = kUnitsOfSide;
// Factor on the cutoff: boxes and distances are rounded.
constexpr double kReach = 1.0001;
constexpr std::uint64_t kParticlesOfACell = 12;

std::int64_t floor_to(std::int64_t value, std::int64_t step) { return value & -step; }
std::int64_t ceil_to(std::int64_t value, std::int64_t step) { return floor_to(value + step - 1, step); }

void grow_axis(double r_cut, int level, std::uint32_t& centre, float& half) {
  const std::int64_t cell = kSide >> level, middle = centre;
  const auto extent = static_cast<std::int64_t>(std::ceil(std::min(static_cast<double>(half), 0.5 * kSideToUnits)));
  const auto reach = static_cast<std::int64_t>(std::ceil(kReach * r_cut * kSideToUnits));
  // A particle at the far end of an interval belongs to the cell that begins there.
  const std::int64_t low = floor_to(floor_to(middle - extent, 2 * cell) - reach, cell);
  const std::int64_t high = ceil_to(ceil_to(middle + extent + 1, 2 * cell) + reach, cell);
  const std::int64_t length = std::min(high - low, kSide);
  centre = static_cast<std::uint32_t>(length == kSide ? middle : low + length / 2);
  half = std::nextafter(static_cast<float>(length - length / 2), std::numeric_limits<float>::max());
}

// Fraction of the cutoff within which a cell counts as touching a target, despite rounding of distances.
constexpr float kTouch = 1e-3f;

constexpr int kTag = 4701;  // distinct from other messages in flight between the same ranks

// The box of a tree's root, as all ranks learn it; extents in sides. 0 cells: there is no tree.
struct RootBox {
  std::uint32_t cells = 0, x = 0, y = 0, z = 0;
  float hx = 0, hy = 0, hz = 0;
  WalkTarget target(float drift) const {
    return {x, y, z, (hx + drift) * kSideInUnits, (hy + drift) * kSideInUnits, (hz + drift) * kSideInUnits};
  }
};

RootBox root_box(const Stream& stream, Octree& tree) {
  RootBox box;
  if (tree.cells == 0) return box;
  box.cells = tree.cells;
  const CellGeometryView g = tree.geometry.view();
  copy_to_host(stream, &box.x, g.x, sizeof box.x);
  copy_to_host(stream, &box.y, g.y, sizeof box.y);
  copy_to_host(stream, &box.z, g.z, sizeof box.z);
  copy_to_host(stream, &box.hx, g.hx, sizeof box.hx);
  copy_to_host(stream, &box.hy, g.hy, sizeof box.hy);
  copy_to_host(stream, &box.hz, g.hz, sizeof box.hz);
  return box;
}

}  // namespace

int whole_cell_level(std::uint64_t particles, int least) {
  int level = std::max(least, 1);
  while (level < kMortonLevels - 1 && (std::uint64_t{1} << (3 * level)) * kParticlesOfACell < particles) ++level;
  return level;
}

double whole_cell_margin(int level) { return 3 * std::ldexp(1.0, -level); }

double expected_ghosts(double particles, double r_cut, int ranks, int sites) {
  const int level = whole_cell_level(static_cast<std::uint64_t>(particles), kPeriodicMinLevel);
  const double margin = r_cut + 0.5 * whole_cell_margin(level);
  const double side = 1 / std::cbrt(static_cast<double>(ranks) * sites), slab = 1.0 / sites;
  const double around = std::min(1.0, side + 2 * margin);
  const double of_ranks = ranks > 1 ? around * around * around - side * side * side : 0;
  return particles * (of_ranks + std::min(1 - slab, 2 * margin));
}

WalkTarget grow_to_whole_cells(const WalkTarget& target, float r_cut, int level) {
  WalkTarget grown = target;
  grow_axis(r_cut, level, grown.x, grown.hx);
  grow_axis(r_cut, level, grown.y, grown.hy);
  grow_axis(r_cut, level, grown.z, grown.hz);
  return grown;
}

LetRule let_rule(const WalkOptions& walk, const LetOptions& options, int whole_cells) {
  if (whole_cells > 0) {
    WalkOptions touch = walk;  // targets were grown by grow_to_whole_cells()
    touch.r_cut *= kTouch;
    return {touch.rule(), 1, true, walk.small_cell, true};
  }
  WalkOptions longer = walk;
  longer.r_cut *= 1 + options.reach_skin;
  return {longer.rule(), 1 + options.skin, walk.r_cut > 0, walk.small_cell};
}

void LocalEssentialTree::select(const Stream& stream, Octree& tree, const WalkOptions& walk, float drift) {
  const auto size = static_cast<std::size_t>(ranks_.size());
  const RootBox mine = root_box(stream, tree);
  const std::vector<RootBox> boxes = gathered(ranks_, mine);
  std::vector<WalkTarget> targets;
  std::vector<std::size_t> others;
  for (std::size_t r = 0; r < size; ++r) {
    if (mine.cells == 0 || boxes[r].cells == 0 || r == static_cast<std::size_t>(ranks_.rank())) continue;
    targets.push_back(whole_cells_ > 0 ? grow_to_whole_cells(boxes[r].target(0), walk.r_cut, whole_cells_)
                                       : boxes[r].target(drift));
    others.push_back(r);
  }
  const auto found = select_essential(stream, tree, let_rule(walk, options_, whole_cells_), targets, out_.selection);
  std::vector<BlockCounts> to_each(size);
  for (std::size_t t = 0; t < others.size(); ++t) to_each[others[t]] = found[t];
  agree_on_sizes(stream, to_each);
}

// Two 32-bit numbers are sent as one of 64; neither reaches 2^32, nor does the sum over all ranks.
void LocalEssentialTree::agree_on_sizes(const Stream& stream, const std::vector<BlockCounts>& to_each) {
  std::vector<std::uint64_t> entries, multipoles;
  for (const BlockCounts& counts : to_each) {
    entries.push_back(counts.particles << 32 | counts.cells);
    multipoles.push_back(counts.multipoles);
  }
  entries = ranks_.exchange_sizes(entries);
  multipoles = ranks_.exchange_sizes(multipoles);
  to_.clear();
  from_.clear();
  std::vector<BlockCounts> sent, received;
  for (std::size_t r = 0; r < to_each.size(); ++r) {
    if (to_each[r].cells > 0) {
      to_.push_back(static_cast<int>(r));
      sent.push_back(to_each[r]);
    }
    if (entries[r] > 0) {
      from_.push_back(static_cast<int>(r));
      received.push_back({entries[r] >> 32, multipoles[r], entries[r] & UINT32_MAX});
    }
  }
  out_.blocks = Blocks(stream, sent, options_.compress);
  in_.expect(stream, received, options_.compress);
}

void LocalEssentialTree::send(const Stream& stream, Octree& tree, const SourceParticle* particles, bool shapes) {
  with_shapes_ = shapes;
  out_.pack(stream, tree, particles, shapes);
  std::vector<Communicator::Outgoing> sent;
  for (std::size_t b = 0; b < to_.size(); ++b)
    sent.push_back({to_[b], out_.packed.data() + out_.blocks.begin(b), out_.blocks.message_bytes(b, shapes)});
  std::vector<Communicator::Incoming> received;
  for (std::size_t b = 0; b < from_.size(); ++b)
    received.push_back({from_[b], in_.packed.data() + in_.blocks.begin(b), in_.blocks.message_bytes(b, shapes)});
  count(sent, received);
  // Zeros are empty leaves: where a peer is lost, walks that are queued already come to an end.
  if (shapes && payload_.path() == PayloadPath::kNccl) fill_zero(stream, in_.packed.data(), in_.blocks.bytes());
  under_way_ = true;
  begun_ = WallClock::now();
  arrived_ = sent.empty() && received.empty();
  if (!arrived_) transfer_.emplace(payload_.begin(stream, sent, received, kTag));
}

bool LocalEssentialTree::progress() {
  if (!arrived_ && transfer_->progress()) {
    arrived_ = true;
    counts_.exchange_seconds = seconds_since(begun_);
  }
  return arrived_;
}

void LocalEssentialTree::wait(const Stream& stream) {
  if (!transfer_) return;
  progress();
  const auto begin = WallClock::now();
  transfer_->finish(stream);
  transfer_.reset();
  if (arrived_) return;
  arrived_ = true;
  counts_.waited_seconds = seconds_since(begin);
  counts_.exchange_seconds = seconds_since(begun_);
}

void LocalEssentialTree::count(std::span<const Communicator::Outgoing> sent,
                               std::span<const Communicator::Incoming> received) {
  counts_ = {};
  counts_.cells_sent = out_.blocks.total().cells;
  counts_.particles_sent = out_.blocks.total().particles;
  counts_.cells_received = in_.blocks.total().cells;
  counts_.particles_received = in_.blocks.total().particles;
  counts_.messages_sent = sent.size();
  counts_.messages_received = received.size();
  for (const auto& message : sent) counts_.bytes_sent += message.bytes;
  for (const auto& message : received) counts_.bytes_received += message.bytes;
}

LocalEssentialTree::LocalEssentialTree(const Communicator& ranks, const LetOptions& options)
    : ranks_(ranks), options_(options), payload_(ranks) {
  in_.forest.tree.geometry.has_error_lengths = options.error_lengths;
}

void LocalEssentialTree::rebuild(const Stream& stream, Octree& tree, const SourceParticle* particles,
                                 const WalkOptions& walk, float drift) {
  if (under_way_) throw std::logic_error("a local essential tree is still on its way");
  select(stream, tree, walk, drift);
  send(stream, tree, particles, true);
}

void LocalEssentialTree::update(const Stream& stream, Octree& tree, const SourceParticle* particles) {
  if (under_way_) throw std::logic_error("a local essential tree is still on its way");
  send(stream, tree, particles, false);
}

// The domain is taken as a cube of a uniform set. Leaves too near for the opening criterion arrive particle by
// particle; beyond them, shells of doubling distance x, to the edge of the box or to r_cut, arrive as cells of side
// theta x / sqrt(3).
double let_bytes(double particles, double theta, double reach, int ranks) {
  constexpr double of_cell = 100, inner = 8.0 / 7;  // bytes; a tree has 1/7 more cells, above its leaves
  // Memory over that of the entries imported in a uniform set, for the trees sent, their selection, and clustering: 3
  // at z = 5, 9 at z = 0.
  constexpr double kept = 9;
  const auto cubed = [](double x) { return x * x * x; };
  const double side = 1 / std::cbrt(static_cast<double>(ranks)), opened = theta / (1 + LetOptions().skin);
  const double leaf = std::cbrt(kParticlesALeaf / particles), near = std::sqrt(3.0) * leaf / opened;
  const auto shell = [&](double from, double to) {
    return std::min(1.0, cubed(side + 2 * to)) - std::min(1.0, cubed(side + 2 * from));
  };
  const double whole = particles * shell(0, std::min(near, reach));
  double cells = whole / kParticlesALeaf;
  for (double x = near; x < reach; x *= 2)
    cells +=
        shell(x, std::min(2 * x, reach)) * std::min(particles / kParticlesALeaf, cubed(std::sqrt(3.0) / (opened * x)));
  return kept * (sizeof(SourceParticle) * whole + of_cell * inner * cells);
}

void LocalEssentialTree::finish(const Stream& stream) {
  if (!under_way_) return;
  wait(stream);
  under_way_ = false;
  in_.unpack(stream, with_shapes_, whole_cells_ > 0);
}

}  // namespace maki
