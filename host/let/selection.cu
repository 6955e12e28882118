#include "host/let/forest.hpp"

#include <string>

#include "host/let/blocks.hpp"
#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/device/thrust.cuh"
#include "kernels/error.hpp"

namespace maki {
namespace {

[[noreturn]] void too_many(const char* what) {
  throw Error(std::string("the local essential trees for all ranks have 2^32 ") + what + " or more",
              "indices have 32 bits", "start more ranks, or choose a larger gravity.theta");
}

enum Verdict : std::uint8_t { kLeftOut, kLeaf, kClosed, kOpened };

// Candidate cells of one level, target by target, and for each target in the order of their parents.
struct Candidates {
  std::uint32_t n;
  DeviceBuffer<std::uint32_t> cell, target;
  DeviceBuffer<Verdict> verdict;
  DeviceBuffer<std::uint32_t> child;  // n + 1: its first child among the next level's candidates
  DeviceBuffer<std::uint32_t> place;  // n + 1: number of kept cells before it

  explicit Candidates(std::uint32_t count)
      : n(count), cell(kName, n), target(kName, n), verdict(kName, n), child(kName, n + 1), place(kName, n + 1) {}
  static constexpr const char* kName = "let.candidates";
};

struct BeginAtRoots {
  std::uint32_t* cell;
  std::uint32_t* target;
  MAKI_HD void operator()(std::size_t i) const {
    cell[i] = 0;
    target[i] = static_cast<std::uint32_t>(i);
  }
};

struct Judge : TreeTopology {
  LetRule rule;
  const WalkTarget* targets;
  CellGeometryView g;
  const std::uint32_t* cell;
  const std::uint32_t* target;
  Verdict* verdict;
  std::uint32_t* children;

  MAKI_HD bool reaches(const WalkTarget& t, std::uint32_t c) const {
    return within_reach(rule.opening, g.box_gap_squared(t, c));
  }
  MAKI_HD bool is_far(const WalkTarget& t, std::uint32_t c) const {
    const float nearest = rounded_product(opening_distance(rule.opening, t, g.size_of(c)), rule.distance_factor);
    return far_enough(g.centre_gap_squared(t, c), nearest);
  }
  MAKI_HD Verdict judge(const WalkTarget& t, std::uint32_t c) const {
    if (rule.cutoff && !reaches(t, c)) return kLeftOut;
    if (count[c] <= rule.small_cell) return kLeaf;
    if (!rule.whole && is_far(t, c)) return kClosed;
    return child_count[c] == 0 ? kLeaf : kOpened;
  }
  MAKI_HD void operator()(std::size_t i) const {
    const std::uint32_t c = cell[i];
    verdict[i] = judge(targets[target[i]], c);
    children[i] = verdict[i] == kOpened ? child_count[c] : 0;
  }
};

struct Wide {
  const std::uint32_t* numbers;
  MAKI_HD std::uint64_t operator()(std::size_t i) const { return numbers[i]; }
};

struct Open {
  const std::uint32_t* first_child;
  const std::uint32_t* cell;
  const std::uint32_t* target;
  const std::uint32_t* child;
  std::uint32_t* next_cell;
  std::uint32_t* next_target;
  MAKI_HD void operator()(std::size_t i) const {
    for (std::uint32_t k = child[i]; k < child[i + 1]; ++k) {
      next_cell[k] = first_child[cell[i]] + (k - child[i]);
      next_target[k] = target[i];
    }
  }
};

// An opened cell is kept if any of its children is.
struct Keep {
  const Verdict* verdict;
  const std::uint32_t* child;
  const std::uint32_t* next_place;  // of the level below; not read where nothing is opened
  std::uint32_t* kept;
  MAKI_HD void operator()(std::size_t i) const {
    const std::uint32_t begin = child[i], end = child[i + 1];
    kept[i] = end > begin ? next_place[end] > next_place[begin] : verdict[i] == kLeaf || verdict[i] == kClosed;
  }
};

// Number of kept cells of this level for targets before t.
struct KeptBefore {
  const std::uint32_t* target;
  const std::uint32_t* place;
  std::uint32_t n;
  std::uint32_t* before;
  MAKI_HD void operator()(std::size_t t) const {
    std::uint32_t low = 0, high = n;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (target[middle] < t)
        low = middle + 1;
      else
        high = middle;
    }
    before[t] = place[low];
  }
};

struct Emit {
  const Verdict* verdict;
  const std::uint32_t *cell, *target, *child, *place;
  const std::uint32_t* next_place;  // of the level below; not read where nothing is opened
  const std::uint32_t* shift;       // by target: from the place within the level to that in the blocks
  const std::uint32_t* count;
  std::uint32_t* cells;
  std::uint32_t* shapes;
  MAKI_HD void operator()(std::size_t i) const {
    if (place[i + 1] == place[i]) return;
    const std::uint32_t at = place[i] + shift[target[i]];
    cells[at] = cell[i];
    if (verdict[i] == kOpened)
      shapes[at] = kDividedCell + (next_place[child[i + 1]] - next_place[child[i]]);
    else
      shapes[at] = verdict[i] == kClosed ? kClosedCell : count[cell[i]];
  }
};

struct BlockBegins {
  const std::uint32_t* first_cell;
  const std::uint32_t* multipole_place;
  const std::uint64_t* particle_place;
  std::uint64_t* multipoles;
  std::uint64_t* particles;
  MAKI_HD void operator()(std::size_t b) const {
    multipoles[b] = multipole_place[first_cell[b]];
    particles[b] = particle_place[first_cell[b]];
  }
};

struct ListMultipoles {
  const std::uint32_t* shapes;
  const std::uint32_t* cells;
  const std::uint32_t* place;
  std::uint32_t* multipoles;
  MAKI_HD void operator()(std::size_t i) const {
    if (!is_leaf(shapes[i])) multipoles[place[i]] = cells[i];
  }
};

struct ListParticles {
  const std::uint32_t* first;
  const std::uint32_t* cells;
  const std::uint64_t* place;  // by cell of the blocks: its first particle there
  std::uint32_t n;             // cells
  std::uint32_t* particles;
  MAKI_HD void operator()(std::size_t i) const {
    const std::uint32_t cell = interval_of(place, n, static_cast<std::uint64_t>(i));
    particles[i] = first[cells[cell]] + static_cast<std::uint32_t>(i - place[cell]);
  }
};

std::vector<Candidates> look_down(const Stream& stream, Octree& tree, const LetRule& rule,
                                  const std::vector<WalkTarget>& targets) {
  DeviceBuffer<WalkTarget> boxes("let.targets");
  boxes.upload(stream, targets);
  std::vector<Candidates> levels;
  levels.emplace_back(static_cast<std::uint32_t>(targets.size()));
  launch(stream, "let_roots", targets.size(), BeginAtRoots{levels[0].cell.data(), levels[0].target.data()});
  for (;;) {
    Candidates& level = levels.back();
    DeviceBuffer<std::uint32_t> children(Candidates::kName, level.n);
    launch(stream, "let_judge", level.n,
           Judge{tree.topology(), rule, boxes.data(), tree.geometry.view(), level.cell.data(), level.target.data(),
                 level.verdict.data(), children.data()});
    if (level.n > UINT32_MAX / 8 &&  // of at most 8 children each
        sum_over(stream, "let_total", level.n, Wide{children.data()}) >= UINT32_MAX)
      too_many("cells");
    exclusive_scan(stream, children.data(), level.child.data(), level.n);
    std::uint32_t next = 0;
    copy_to_host(stream, &next, level.child.data() + level.n, sizeof next);
    if (next == 0) return levels;
    Candidates below(next);
    launch(stream, "let_open", level.n,
           Open{tree.first_child.data(), level.cell.data(), level.target.data(), level.child.data(), below.cell.data(),
                below.target.data()});
    levels.push_back(std::move(below));
  }
}

// Fills the places of all levels. Returns the number of kept cells for the targets before each, level after level.
std::vector<std::uint32_t> look_up(const Stream& stream, std::vector<Candidates>& levels, std::size_t targets) {
  DeviceBuffer<std::uint32_t> before("let.candidates", levels.size() * (targets + 1));
  for (std::size_t l = levels.size(); l-- > 0;) {
    Candidates& level = levels[l];
    const std::uint32_t* below = l + 1 < levels.size() ? levels[l + 1].place.data() : nullptr;
    DeviceBuffer<std::uint32_t> kept(Candidates::kName, level.n);
    launch(stream, "let_keep", level.n, Keep{level.verdict.data(), level.child.data(), below, kept.data()});
    exclusive_scan(stream, kept.data(), level.place.data(), level.n);
    launch(stream, "let_kept_before", targets + 1,
           KeptBefore{level.target.data(), level.place.data(), level.n, before.data() + l * (targets + 1)});
  }
  return before.download(stream);
}

// By target, the first cell of each block (one more entry than targets); by level and target, the shift from a place
// within the level to that in the blocks.
struct Places {
  std::vector<std::uint32_t> first, shift;
};

Places place_blocks(const std::vector<std::uint32_t>& before, std::size_t levels, std::size_t targets) {
  Places places{{0}, std::vector<std::uint32_t>(levels * targets)};
  std::uint64_t at = 0;
  for (std::size_t t = 0; t < targets; ++t) {
    for (std::size_t l = 0; l < levels; ++l) {
      const std::uint32_t* row = before.data() + l * (targets + 1);
      places.shift[l * targets + t] = static_cast<std::uint32_t>(at) - row[t];  // may wrap
      at += row[t + 1] - row[t];
    }
    if (at > UINT32_MAX) too_many("cells");
    places.first.push_back(static_cast<std::uint32_t>(at));
  }
  return places;
}

// Makes lists of multipoles and particles from shapes and cells.
std::vector<BlockCounts> list_entries(const Stream& stream, const Octree& tree, const std::vector<std::uint32_t>& first,
                                      const DeviceBuffer<std::uint32_t>& cells, LetSelection& selection) {
  const std::uint32_t n = first.back();
  const std::size_t entries = first.size();
  const ShapeSums sums = sum_shapes(stream, selection.shapes);
  DeviceBuffer<std::uint64_t> begins("let.scratch", 2 * entries);
  DeviceBuffer<std::uint32_t> first_cell("let.scratch");
  first_cell.upload(stream, first);
  launch(stream, "let_begins", entries,
         BlockBegins{first_cell.data(), sums.multipoles.data(), sums.particles.data(), begins.data(),
                     begins.data() + entries});
  const std::vector<std::uint64_t> begin = begins.download(stream);
  std::vector<BlockCounts> counts;
  for (std::size_t t = 0; t + 1 < entries; ++t)
    counts.push_back({begin[entries + t + 1] - begin[entries + t], begin[t + 1] - begin[t], first[t + 1] - first[t]});

  const std::uint64_t particles = begin.back();
  if (particles > UINT32_MAX) too_many("particles");
  selection.multipoles.resize(begin[entries - 1], 0.1);
  selection.particles.resize(particles, 0.1);
  launch(stream, "let_multipoles", n,
         ListMultipoles{selection.shapes.data(), cells.data(), sums.multipoles.data(), selection.multipoles.data()});
  launch(stream, "let_particles", particles,
         ListParticles{tree.first.data(), cells.data(), sums.particles.data(), n, selection.particles.data()});
  return counts;
}

}  // namespace

std::vector<BlockCounts> select_essential(const Stream& stream, Octree& tree, const LetRule& rule,
                                          const std::vector<WalkTarget>& targets, LetSelection& selection) {
  selection.shapes.resize(0);
  selection.multipoles.resize(0);
  selection.particles.resize(0);
  if (targets.empty() || tree.cells == 0) return std::vector<BlockCounts>(targets.size());
  std::vector<Candidates> levels = look_down(stream, tree, rule, targets);
  const std::vector<std::uint32_t> before = look_up(stream, levels, targets.size());
  const Places places = place_blocks(before, levels.size(), targets.size());
  DeviceBuffer<std::uint32_t> shift("let.scratch"), cells("let.scratch", places.first.back());
  shift.upload(stream, places.shift);
  selection.shapes.resize(places.first.back(), 0.1);
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const Candidates& level = levels[l];
    const std::uint32_t* below = l + 1 < levels.size() ? levels[l + 1].place.data() : nullptr;
    launch(stream, "let_emit", level.n,
           Emit{level.verdict.data(), level.cell.data(), level.target.data(), level.child.data(), level.place.data(),
                below, shift.data() + l * targets.size(), tree.count.data(), cells.data(), selection.shapes.data()});
  }
  levels.clear();
  return list_entries(stream, tree, places.first, cells, selection);
}

}  // namespace maki
