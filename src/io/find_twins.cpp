#include "src/io/check_snapshot.hpp"

#include <algorithm>
#include <limits>
#include <parallel/algorithm>

#include <vector>

#include "host/comm/communicator.hpp"

namespace maki {

namespace {

using Point = std::array<std::uint32_t, 3>;

class Grid {
 public:
  Grid(const Snapshot& share, const Communicator& ranks) : side_(share.header.box_size) {
    if (side_ > 0) return;
    double low = std::numeric_limits<double>::max(), high = std::numeric_limits<double>::lowest();
    for (const auto& position : share.positions) {
      for (const double x : position) low = std::min(low, x), high = std::max(high, x);
    }
    low_ = smallest_of(ranks, low);
    side_ = std::max(2 * (largest_of(ranks, high) - low_), std::numeric_limits<double>::min());
  }
  Point point(const std::array<double, 3>& position) const {
    Point point;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double fraction = (position[axis] - low_) / side_;
      point[axis] = static_cast<std::uint32_t>(static_cast<std::uint64_t>(fraction * 4294967296.0));
    }
    return point;
  }

 private:
  double low_ = 0, side_;
};

// Hash of a point (multiplications of Fowler, Noll and Vo), which spreads any set of points evenly over ranks.
std::size_t rank_of(const Point& point, int ranks) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::uint32_t x : point) hash = (hash ^ x) * 0x100000001b3u;
  hash ^= hash >> 32;
  return static_cast<std::size_t>((hash & 0xffffffffu) * static_cast<std::uint64_t>(ranks) >> 32);
}

std::vector<Point> all_points(const Snapshot& share, const Grid& grid) {
  std::vector<Point> points(share.size());
#pragma omp parallel for
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = grid.point(share.positions[i]);
  return points;
}

// Sends each point to the rank of its hash; returns the points received.
std::vector<Point> hand_out(const Snapshot& share, const Grid& grid, const Communicator& ranks) {
  const std::size_t size = static_cast<std::size_t>(ranks.size());
  std::vector<std::uint64_t> counts(size), next(size);
  std::vector<Point> sorted, points;
  all_succeed(ranks, [&] {
    sorted.resize(share.size());
    for (const auto& position : share.positions) ++counts[rank_of(grid.point(position), ranks.size())];
    for (std::size_t r = 1; r < size; ++r) next[r] = next[r - 1] + counts[r - 1];
    for (const auto& position : share.positions) {
      const Point point = grid.point(position);
      sorted[next[rank_of(point, ranks.size())]++] = point;
    }
  });
  const auto coming = ranks.exchange_sizes(counts);
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  all_succeed(ranks, [&] {
    std::uint64_t total = 0;
    for (const std::uint64_t n : coming) total += n;
    points.resize(total);
    std::uint64_t at = 0;
    for (std::size_t r = 0; r < size; at += coming[r], ++r) {
      const int rank = static_cast<int>(r);
      if (counts[r] > 0) out.push_back({rank, &sorted[next[r] - counts[r]], counts[r] * sizeof(Point)});
      if (coming[r] > 0) in.push_back({rank, &points[at], coming[r] * sizeof(Point)});
    }
  });
  ranks.exchange(out, in);
  return points;
}

// Number of particles of all ranks at points with several, and the first such point.
struct SharedPoints {
  std::uint64_t particles = 0;
  Point first{};
};

// Shared points among sorted ones.
SharedPoints count_shared(const std::vector<Point>& points) {
  SharedPoints shared;
  for (auto begin = points.begin(); begin != points.end();) {
    const auto end = std::find_if(begin, points.end(), [&](const Point& point) { return point != *begin; });
    if (end - begin > 1) {
      if (shared.particles == 0) shared.first = *begin;
      shared.particles += static_cast<std::uint64_t>(end - begin);
    }
    begin = end;
  }
  return shared;
}

SharedPoints shared_points(const Snapshot& share, const Grid& grid, const Communicator& ranks) {
  SharedPoints own;
  std::vector<Point> points;
  if (ranks.size() > 1) points = hand_out(share, grid, ranks);
  all_succeed(ranks, [&] {
    if (ranks.size() == 1) points = all_points(share, grid);
    __gnu_parallel::sort(points.begin(), points.end());
    own = count_shared(points);
  });
  SharedPoints whole;
  for (const SharedPoints& one : gathered(ranks, own)) {
    if (one.particles == 0) continue;
    if (whole.particles == 0 || one.first < whole.first) whole.first = one.first;
    whole.particles += one.particles;
  }
  return whole;
}

}  // namespace

std::optional<Twins> find_twins(const Snapshot& share, const Communicator& ranks) {
  const Grid grid(share, ranks);
  const SharedPoints shared = shared_points(share, grid, ranks);
  if (shared.particles == 0) return std::nullopt;
  struct Here {  // ids of this rank's first two particles at the point
    std::uint64_t count;
    std::array<std::uint64_t, 2> ids;
    std::array<double, 3> position;
  } own{};
  for (std::size_t i = 0; i < share.size() && own.count < 2; ++i) {
    if (grid.point(share.positions[i]) != shared.first) continue;
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

}  // namespace maki
