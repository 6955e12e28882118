#include "src/io/check_snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <parallel/algorithm>
#include <tuple>

#include "kernels/device/error.hpp"

namespace maki {

namespace {

std::string name_of(const Snapshot& s, std::size_t i) { return fmt::format("particle {} (id {})", i, s.ids[i]); }

template <class Vector> bool is_finite(const Vector& v) {
  return std::isfinite(v[0]) && std::isfinite(v[1]) && std::isfinite(v[2]);
}

// Index of the first particle for which `bad` holds, and how many there are.
template <class Bad> std::pair<std::size_t, std::size_t> find_bad(std::size_t n, Bad bad) {
  std::size_t first = n, count = 0;
#pragma omp parallel for reduction(min : first) reduction(+ : count)
  for (std::size_t i = 0; i < n; ++i) {
    if (bad(i)) {
      first = std::min(first, i);
      ++count;
    }
  }
  return {first, count};
}

void check_finite(const Snapshot& s, const std::string& source) {
  const auto [position, positions] = find_bad(s.size(), [&](std::size_t i) { return !is_finite(s.positions[i]); });
  if (positions > 0) {
    const auto& x = s.positions[position];
    throw Error(fmt::format("'{}': {} has a position that is not a number", source, name_of(s, position)),
                fmt::format("({}, {}, {}); {} such particles", x[0], x[1], x[2], positions),
                "repair the file or make it again");
  }
  const auto [velocity, velocities] = find_bad(s.size(), [&](std::size_t i) { return !is_finite(s.velocities[i]); });
  if (velocities > 0) {
    const auto& v = s.velocities[velocity];
    throw Error(fmt::format("'{}': {} has a velocity that is not a number", source, name_of(s, velocity)),
                fmt::format("({}, {}, {}); {} such particles", v[0], v[1], v[2], velocities),
                "repair the file or make it again");
  }
}

void check_masses(const Snapshot& s, const std::string& source) {
  const auto [first, count] =
      find_bad(s.size(), [&](std::size_t i) { return !(s.masses[i] > 0) || !std::isfinite(s.masses[i]); });
  if (count == 0) return;
  throw Error(fmt::format("'{}': {} has the mass {}", source, name_of(s, first), s.masses[first]),
              fmt::format("{} such particles", count), "every particle needs a positive mass; remove or repair them");
}

void check_box(Snapshot& s, const std::string& source, std::vector<std::string>& notes) {
  const double box = s.header.box_size;
  if (s.header.comoving && !(box > 0 && std::isfinite(box))) {
    throw Error(fmt::format("'{}' has the box size {}", source, box), "a comoving set is periodic",
                "set BoxSize in the header");
  }
  if (!(box > 0)) return;
  const auto [outside, count] = find_bad(s.size(), [&](std::size_t i) {
    return std::any_of(s.positions[i].begin(), s.positions[i].end(), [&](double x) { return x < 0 || x > box; });
  });
  if (count > 0 && !s.header.comoving) {
    notes.push_back(fmt::format("{} particles lie outside the BoxSize {} of this isolated set: BoxSize is ignored",
                                count, box));
    s.header.box_size = 0;
    return;
  }
  if (count > 0) {
    const auto& x = s.positions[outside];
    throw Error(fmt::format("'{}': {} lies outside the box", source, name_of(s, outside)),
                fmt::format("at ({:g}, {:g}, {:g}) in a box of {:g}; {} such particles", x[0], x[1], x[2], box, count),
                "check BoxSize and the length unit, or wrap the positions into [0, BoxSize)");
  }
  const auto [edge, wrapped] = find_bad(s.size(), [&](std::size_t i) {
    return std::any_of(s.positions[i].begin(), s.positions[i].end(), [&](double x) { return x == box; });
  });
  if (wrapped == 0) return;
  for (auto& position : s.positions) {
    for (double& x : position) x = x == box ? 0 : x;
  }
  notes.push_back(fmt::format("{} particles at the upper edge of the box were wrapped to 0, the first being id {}",
                              wrapped, s.ids[edge]));
}

struct Point {
  std::array<std::uint32_t, 3> at;
  std::uint32_t particle;
  bool operator<(const Point& other) const { return std::tie(at, particle) < std::tie(other.at, other.particle); }
};

void check_distinct(const Snapshot& s, const std::string& source) {
  double low = 0, side = s.header.box_size;
  if (!(side > 0)) {  // an isolated set: the cube around it
    low = std::numeric_limits<double>::max();
    double high = std::numeric_limits<double>::lowest();
    for (const auto& position : s.positions) {
      for (const double x : position) low = std::min(low, x), high = std::max(high, x);
    }
    side = std::max(2 * (high - low), std::numeric_limits<double>::min());
  }
  std::vector<Point> points(s.size());
#pragma omp parallel for
  for (std::size_t i = 0; i < s.size(); ++i) {
    for (int axis = 0; axis < 3; ++axis) {
      const double fraction = (s.positions[i][static_cast<std::size_t>(axis)] - low) / side;
      points[i].at[static_cast<std::size_t>(axis)] =
          static_cast<std::uint32_t>(static_cast<std::uint64_t>(fraction * 4294967296.0));
    }
    points[i].particle = static_cast<std::uint32_t>(i);
  }
  __gnu_parallel::sort(points.begin(), points.end());
  const auto twin = std::adjacent_find(points.begin(), points.end(),
                                       [](const Point& a, const Point& b) { return a.at == b.at; });
  if (twin == points.end()) return;
  const std::size_t i = twin->particle, j = std::next(twin)->particle;
  const auto& x = s.positions[i];
  throw Error(fmt::format("'{}': two particles at one point", source),
              fmt::format("ids {} and {} at ({:.9g}, {:.9g}, {:.9g})", s.ids[i], s.ids[j], x[0], x[1], x[2]),
              "remove one of them or move them apart");
}

}  // namespace

void check_snapshot(Snapshot& snapshot, const std::string& source, std::vector<std::string>& notes) {
  if (snapshot.size() == 0) {
    throw Error(fmt::format("'{}' holds no particles", source), "",
                "check the file; a run needs at least one particle");
  }
  check_finite(snapshot, source);
  check_masses(snapshot, source);
  check_box(snapshot, source, notes);
  check_distinct(snapshot, source);
}

}  // namespace maki
