#include "src/io/snapshot_io.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <parallel/algorithm>
#include <type_traits>

#include "kernels/error.hpp"

namespace maki {
namespace {

// ---- particles at one point or with one id --------------------------------------------------------------------------

// The coordinates on the device of a position in a box.
std::array<std::uint32_t, 3> point_in_box(const std::array<double, 3>& position, double side) {
  std::array<std::uint32_t, 3> point;
  for (std::size_t axis = 0; axis < 3; ++axis)
    point[axis] = static_cast<std::uint32_t>(static_cast<std::uint64_t>(position[axis] / side * 4294967296.0));
  return point;
}

// Hash of a key's words (multiplications of Fowler, Noll and Vo), which spreads any set of keys evenly over ranks.
template <class Key>
std::size_t rank_of(const Key& key, int ranks) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::uint32_t word : std::bit_cast<std::array<std::uint32_t, sizeof(Key) / 4>>(key))
    hash = (hash ^ word) * 0x100000001b3u;
  hash ^= hash >> 32;
  return static_cast<std::size_t>((hash & 0xffffffffu) * static_cast<std::uint64_t>(ranks) >> 32);
}

// The keys (points or ids) of this rank's share: `key_of(i)` is that of particle i.
template <class KeyOf>
auto all_keys(std::size_t count, const KeyOf& key_of) {
  std::vector<std::decay_t<decltype(key_of(0))>> keys(count);
#pragma omp parallel for
  for (std::size_t i = 0; i < count; ++i) keys[i] = key_of(i);
  return keys;
}

// Sends each key to the rank of its hash; returns the keys received from each rank.
template <class KeyOf>
auto hand_out(std::size_t count, const KeyOf& key_of, const Communicator& ranks) {
  std::vector<std::vector<std::decay_t<decltype(key_of(0))>>> out(static_cast<std::size_t>(ranks.size()));
  all_succeed(ranks, [&] {
    std::vector<std::size_t> counts(out.size());
    for (std::size_t i = 0; i < count; ++i) ++counts[rank_of(key_of(i), ranks.size())];
    for (std::size_t r = 0; r < out.size(); ++r) out[r].reserve(counts[r]);
    for (std::size_t i = 0; i < count; ++i) {
      const auto key = key_of(i);
      out[rank_of(key, ranks.size())].push_back(key);
    }
  });
  return exchange_all(ranks, std::move(out));
}

// Number of particles of all ranks that share their key with others, and the first such key.
template <class Key>
struct Shared {
  std::uint64_t particles = 0;
  Key first{};
};

template <class Key>
Shared<Key> count_shared(const std::vector<Key>& sorted) {
  Shared<Key> shared;
  for (auto begin = sorted.begin(); begin != sorted.end();) {
    const auto end = std::find_if(begin, sorted.end(), [&](const Key& key) { return key != *begin; });
    if (end - begin > 1) {
      if (shared.particles == 0) shared.first = *begin;
      shared.particles += static_cast<std::uint64_t>(end - begin);
    }
    begin = end;
  }
  return shared;
}

// Collective; each rank passes the keys of its share.
template <class KeyOf>
auto shared_keys(std::size_t count, const KeyOf& key_of, const Communicator& ranks) {
  using Key = std::decay_t<decltype(key_of(0))>;
  Shared<Key> own, whole;
  std::vector<Key> keys;
  std::vector<std::vector<Key>> received;
  if (ranks.size() > 1) received = hand_out(count, key_of, ranks);
  all_succeed(ranks, [&] {
    keys = ranks.size() > 1 ? joined(std::move(received)) : all_keys(count, key_of);
    __gnu_parallel::sort(keys.begin(), keys.end());
    own = count_shared(keys);
  });
  for (const Shared<Key>& one : gathered(ranks, own)) {
    if (one.particles == 0) continue;
    if (whole.particles == 0 || one.first < whole.first) whole.first = one.first;
    whole.particles += one.particles;
  }
  return whole;
}

// ---- the checks -----------------------------------------------------------------------------------------------------

template <class Vector>
bool is_finite(const Vector& v) {
  return std::isfinite(v[0]) && std::isfinite(v[1]) && std::isfinite(v[2]);
}

// A set under examination: this rank's share, and the number of its first particle in the whole.
class Examined {
 public:
  Examined(Snapshot& share, const std::string& source, const Communicator& ranks)
      : share(share), source(source), ranks(ranks), sizes_(gathered(ranks, std::uint64_t{share.size()})) {
    for (std::size_t r = 0; r < sizes_.size(); ++r) {
      if (r < static_cast<std::size_t>(ranks.rank())) begin_ += sizes_[r];
      total_ += sizes_[r];
    }
  }
  std::uint64_t total() const { return total_; }
  std::string name_of(std::size_t i) const { return fmt::format("particle {} (id {})", begin_ + i, share.ids[i]); }

  struct Found {
    std::uint64_t count = 0;  // of all ranks
    int rank = -1;            // the one that has the first
    std::size_t first = 0;    // its index in that rank's share
  };
  // Finds the particles for which `bad` holds.
  template <class Bad>
  Found find(Bad bad) const {
    std::size_t first = share.size(), count = 0;
#pragma omp parallel for reduction(min : first) reduction(+ : count)
    for (std::size_t i = 0; i < share.size(); ++i) {
      if (bad(i)) {
        first = std::min(first, i);
        ++count;
      }
    }
    const std::array<std::uint64_t, 2> own{count, first};
    const auto all = gathered(ranks, own);
    Found found;
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (found.count == 0 && all[r][0] > 0) found.rank = static_cast<int>(r), found.first = all[r][1];
      found.count += all[r][0];
    }
    return found;
  }
  // Throws error(index) for the first particle found, if any was; the rank that has it makes the Error.
  template <class MakeError>
  void refuse(const Found& found, MakeError make_error) const {
    if (found.count == 0) return;
    throw_together(ranks, found.rank == ranks.rank() ? make_error(found.first).what() : "");
  }

  Snapshot& share;
  const std::string& source;
  const Communicator& ranks;

 private:
  std::vector<std::uint64_t> sizes_;
  std::uint64_t begin_ = 0, total_ = 0;
};

// `what`: "position".
template <class Vector>
void check_finite(const Examined& set, const std::vector<Vector>& vectors, const char* what) {
  const auto found = set.find([&](std::size_t i) { return !is_finite(vectors[i]); });
  set.refuse(found, [&](std::size_t i) {
    const Vector& v = vectors[i];
    return Error(fmt::format("'{}': {} has a {} that is not a number", set.source, set.name_of(i), what),
                 fmt::format("({}, {}, {}); {} such particles", v[0], v[1], v[2], found.count),
                 "repair the file or make it again");
  });
}

// Peculiar velocities above that of light, which no universe has: most likely another unit.
void note_faster_than_light(const Examined& set, std::vector<std::string>& notes) {
  const Snapshot& s = set.share;
  if (!s.header.comoving) return;
  const double light = 2.99792458e10 / s.header.units.velocity_cgs;
  const auto found = set.find([&](std::size_t i) {
    const auto& v = s.velocities[i];
    return std::hypot(v[0], v[1], v[2]) > light;
  });
  if (found.count > 0)
    notes.push_back(
        fmt::format("Warning: {} particles of {} move faster than light (peculiar velocities above {:.3g} "
                    "units of velocity): check the unit of velocities",
                    found.count, set.total(), light));
}

void check_masses(const Examined& set) {
  const Snapshot& s = set.share;
  const auto found = set.find([&](std::size_t i) {
    return !(s.masses[i] >= std::numeric_limits<float>::min()) || !std::isfinite(s.masses[i]);
  });
  set.refuse(found, [&](std::size_t i) {
    return Error(
        fmt::format("'{}': {} has the mass {}", set.source, set.name_of(i), s.masses[i]),
        fmt::format("{} such particles", found.count),
        "every particle needs a mass above 0, in single precision: 1e-38 to 3e38 of the file's unit (grams are "
        "too small a unit for 2e5 solar masses); give tracers a mass too small to matter");
  });
}

constexpr double kRounding = 1e-6;      // of the side: rounding of a position at the edge to single precision
constexpr double kLargestExcess = 0.5;  // of the side; more than a particle moves in the age of the universe
constexpr double kLargestShare = 0.25;  // of the particles; so many lie outside where the box is 10 % too small

double excess_of(const std::array<double, 3>& position, double box) {
  double excess = 0;
  for (const double x : position) excess = std::max({excess, -x, x - box});
  return excess;
}

bool in_box(const std::array<double, 3>& position, double box) {
  return std::all_of(position.begin(), position.end(), [box](double x) { return x >= 0 && x < box; });
}

// Whether the set spans more than one side. A set within one side may be shifted as a whole; its images then still fill
// space.
bool spans_more_than(double box, const Examined& set) {
  const auto [low, high] = extent_of(set.share, set.ranks);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (high[axis] - low[axis] > (1 + kRounding) * box) return true;
  }
  return false;
}

// Codes that wrap positions rarely, or only in memory, write some positions outside. Sets with too many such positions,
// or too distant ones, are refused, as the box must be wrong.
void wrap_into_box(Examined& set, std::vector<std::string>& notes) {
  Snapshot& s = set.share;
  const double box = s.header.box_size;
  const auto outside = set.find([&](std::size_t i) { return !in_box(s.positions[i], box); });
  if (outside.count == 0) return;
  double excess = 0;
  for (const auto& position : s.positions) excess = std::max(excess, excess_of(position, box));
  excess = largest_of(set.ranks, excess);
  const auto share = static_cast<double>(outside.count) / static_cast<double>(set.total());
  const bool too_much = excess > kLargestExcess * box || share > kLargestShare;
  if (too_much && spans_more_than(box, set)) {
    set.refuse(outside, [&](std::size_t i) {
      const auto& x = s.positions[i];
      return Error(fmt::format("'{}': {} lies outside the box", set.source, set.name_of(i)),
                   fmt::format("at ({:g}, {:g}, {:g}) in a box of {:g}; {} such particles of {}, by up to {:.3g}", x[0],
                               x[1], x[2], box, outside.count, set.total(), excess),
                   "this is no box for them: check BoxSize and the length unit, or wrap the positions into "
                   "[0, BoxSize)");
    });
  }
  std::uint64_t id = outside.rank == set.ranks.rank() ? s.ids[outside.first] : 0;
  set.ranks.broadcast(&id, sizeof(id), outside.rank);
  for (auto& position : s.positions) {
    for (double& x : position) {
      x -= std::floor(x / box) * box;
      if (!(x < box)) x = 0;  // rounding of the box plus a tiny negative number
    }
  }
  if (excess <= kRounding * box) {
    notes.push_back(fmt::format("{} particles at the edge of the box were wrapped to the other, the first being id {}",
                                outside.count, id));
  } else {
    notes.push_back(
        fmt::format("Warning: {} particles outside of the box of {:g} were wrapped into it, the first "
                    "being id {}; they were outside by up to {:.3g}",
                    outside.count, box, id, excess));
  }
}

void check_box(Examined& set, std::vector<std::string>& notes) {
  Snapshot& s = set.share;
  const double box = s.header.box_size;
  if (s.header.comoving && !(box > 0 && std::isfinite(box))) {
    throw Error(fmt::format("'{}' has the box size {}", set.source, box), "a comoving set is periodic",
                "set BoxSize in the header");
  }
  if (!(box > 0)) return;
  if (s.header.comoving) return wrap_into_box(set, notes);
  const auto outside = set.find([&](std::size_t i) { return excess_of(s.positions[i], box) > 0; });
  if (outside.count == 0) return;
  notes.push_back(fmt::format("{} particles lie outside the BoxSize {} of this isolated set: BoxSize is ignored",
                              outside.count, box));
  s.header.box_size = 0;
}

// Particles at one point: only their velocities, not their forces, can separate them.
struct Twins {
  std::uint64_t count;               // of particles that share their point with another
  std::array<std::uint64_t, 2> ids;  // of the first two at the first such point
  std::array<double, 3> position;    // of the first
};

// Twins by the points of particles, `point(i)`.
template <class PointOf>
std::optional<Twins> twins_by(const Snapshot& share, const Communicator& ranks, const PointOf& point) {
  const auto shared = shared_keys(share.size(), point, ranks);
  if (shared.particles == 0) return std::nullopt;
  struct Here {  // ids of this rank's first two particles at the point
    std::uint64_t count;
    std::array<std::uint64_t, 2> ids;
    std::array<double, 3> position;
  } own{};
  for (std::size_t i = 0; i < share.size() && own.count < 2; ++i) {
    if (point(i) != shared.first) continue;
    if (own.count == 0) own.position = share.positions[i];
    own.ids[own.count++] = share.ids[i];
  }
  Twins twins{shared.particles, {}, {}};
  std::size_t found = 0;
  for (const Here& here : gathered(ranks, own)) {
    for (std::size_t i = 0; i < here.count && found < 2; ++i) {
      if (found == 0) twins.position = here.position;
      twins.ids[found++] = here.ids[i];
    }
  }
  return twins;
}

// The twins of the whole set, if any: in a box after rounding to 2^-32 of its side, else of equal coordinates; the same
// for any number of ranks. A hash distributes the points of all shares over ranks, which sort them, 12 bytes each (24
// without a box), so that no rank needs memory for more than about its share, twice. Collective.
std::optional<Twins> find_twins(const Snapshot& share, const Communicator& ranks) {
  if (share.header.comoving)
    return twins_by(share, ranks,
                    [&](std::size_t i) { return point_in_box(share.positions[i], share.header.box_size); });
  using Position = std::array<double, 3>;
  return twins_by(share, ranks, [&](std::size_t i) {
    Position position = share.positions[i];
    for (double& x : position) x += 0.0;  // -0 is 0
    return std::bit_cast<std::array<std::uint32_t, sizeof(Position) / 4>>(position);
  });
}

void note_twins(const Examined& set, std::vector<std::string>& notes) {
  const auto twins = find_twins(set.share, set.ranks);
  if (!twins) return;
  const auto& x = twins->position;
  notes.push_back(
      fmt::format("Warning: {} particles share their point with others, the first being ids {} and {} at "
                  "({:.9g}, {:.9g}, {:.9g}); no force moves them apart, and "
                  "potentials leave out what they are to each other, and so does the energy until they part",
                  twins->count, twins->ids[0], twins->ids[1], x[0], x[1], x[2]));
}

void note_shared_ids(const Examined& set, std::vector<std::string>& notes) {
  const auto shared = shared_keys(
      set.share.size(), [&](std::size_t i) { return set.share.ids[i]; }, set.ranks);
  if (shared.particles == 0) return;
  notes.push_back(
      fmt::format("Warning: {} particles share their id with others, the first being id {}; forces are right, "
                  "and what goes by ids (groups' members, links in time, comparisons of files) is not",
                  shared.particles, shared.first));
}

}  // namespace

Extent extent_of(const Snapshot& share, const Communicator& ranks) {
  Extent extent;
  extent.low.fill(std::numeric_limits<double>::infinity());
  extent.high.fill(-std::numeric_limits<double>::infinity());
  for (const auto& position : share.positions) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      extent.low[axis] = std::min(extent.low[axis], position[axis]);
      extent.high[axis] = std::max(extent.high[axis], position[axis]);
    }
  }
  ranks.min(extent.low);
  ranks.max(extent.high);
  return extent;
}

void check_snapshot(Snapshot& snapshot, const std::string& source, std::vector<std::string>& notes,
                    const Communicator& ranks) {
  Examined set(snapshot, source, ranks);
  if (set.total() == 0) {
    throw Error(fmt::format("'{}' holds no particles", source), "", "check the file; at least one particle is needed");
  }
  check_finite(set, snapshot.positions, "position");
  check_finite(set, snapshot.velocities, "velocity");
  check_masses(set);
  check_box(set, notes);
  note_faster_than_light(set, notes);
  note_twins(set, notes);
  note_shared_ids(set, notes);
}

void require_whole(const std::string& what, const std::string& file, const ReadReport& report) {
  const std::string part =
      text_of(report.selection, std::accumulate(report.counts.begin(), report.counts.end(), std::uint64_t{0}));
  if (part.empty()) return;
  throw Error(fmt::format("{} '{}'", what, file), part,
              "give a snapshot that has all particles, or the run's stopped.hdf5");
}

}  // namespace maki
