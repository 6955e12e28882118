#include "src/io/check_snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "host/comm/agree.hpp"
#include "kernels/device/error.hpp"
#include "src/io/find_twins.hpp"

namespace maki {

namespace {

template <class Vector> bool is_finite(const Vector& v) {
  return std::isfinite(v[0]) && std::isfinite(v[1]) && std::isfinite(v[2]);
}

// A set under examination: this rank's share, and where it stands in the whole.
class Examined {
 public:
  Examined(Snapshot& share, const std::string& source, const Communicator& ranks)
      : share(share), source(source), ranks(ranks), sizes_(static_cast<std::size_t>(ranks.size())) {
    const std::uint64_t own = share.size();
    ranks.all_gather(&own, sizes_.data(), sizeof(own));
    for (std::size_t r = 0; r < sizes_.size(); ++r) {
      if (r < static_cast<std::size_t>(ranks.rank())) begin_ += sizes_[r];
      total_ += sizes_[r];
    }
  }
  std::uint64_t total() const { return total_; }
  std::string name_of(std::size_t i) const { return fmt::format("particle {} (id {})", begin_ + i, share.ids[i]); }

  struct Found {
    std::uint64_t count = 0;  // over all ranks
    int rank = -1;            // that has the first
    std::size_t first = 0;    // in that rank's share
  };
  // The particles for which `bad` holds.
  template <class Bad> Found find(Bad bad) const {
    std::size_t first = share.size(), count = 0;
#pragma omp parallel for reduction(min : first) reduction(+ : count)
    for (std::size_t i = 0; i < share.size(); ++i) {
      if (bad(i)) {
        first = std::min(first, i);
        ++count;
      }
    }
    const std::array<std::uint64_t, 2> own{count, first};
    std::vector<std::array<std::uint64_t, 2>> all(sizes_.size());
    ranks.all_gather(&own, all.data(), sizeof(own));
    Found found;
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (found.count == 0 && all[r][0] > 0) found.rank = static_cast<int>(r), found.first = all[r][1];
      found.count += all[r][0];
    }
    return found;
  }
  // Throws the Error that error(index) makes of the first particle found, if any was; the rank that has it makes it.
  template <class MakeError> void refuse(const Found& found, MakeError make_error) const {
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

void check_finite(const Examined& set) {
  const Snapshot& s = set.share;
  const auto positions = set.find([&](std::size_t i) { return !is_finite(s.positions[i]); });
  set.refuse(positions, [&](std::size_t i) {
    const auto& x = s.positions[i];
    return Error(fmt::format("'{}': {} has a position that is not a number", set.source, set.name_of(i)),
                 fmt::format("({}, {}, {}); {} such particles", x[0], x[1], x[2], positions.count),
                 "repair the file or make it again");
  });
  const auto velocities = set.find([&](std::size_t i) { return !is_finite(s.velocities[i]); });
  set.refuse(velocities, [&](std::size_t i) {
    const auto& v = s.velocities[i];
    return Error(fmt::format("'{}': {} has a velocity that is not a number", set.source, set.name_of(i)),
                 fmt::format("({}, {}, {}); {} such particles", v[0], v[1], v[2], velocities.count),
                 "repair the file or make it again");
  });
}

void check_masses(const Examined& set) {
  const Snapshot& s = set.share;
  const auto found = set.find([&](std::size_t i) { return !(s.masses[i] > 0) || !std::isfinite(s.masses[i]); });
  set.refuse(found, [&](std::size_t i) {
    return Error(fmt::format("'{}': {} has the mass {}", set.source, set.name_of(i), s.masses[i]),
                 fmt::format("{} such particles", found.count),
                 "every particle needs a positive mass; remove or repair them");
  });
}

// Positions at the upper edge of the box are at the lower one.
void wrap_edge(Examined& set, std::vector<std::string>& notes) {
  Snapshot& s = set.share;
  const double box = s.header.box_size;
  const auto edge = set.find([&](std::size_t i) {
    return std::any_of(s.positions[i].begin(), s.positions[i].end(), [&](double x) { return x == box; });
  });
  if (edge.count == 0) return;
  for (auto& position : s.positions) {
    for (double& x : position) x = x == box ? 0 : x;
  }
  std::uint64_t id = edge.rank == set.ranks.rank() ? s.ids[edge.first] : 0;
  set.ranks.broadcast(&id, sizeof(id), edge.rank);
  notes.push_back(fmt::format("{} particles at the upper edge of the box were wrapped to 0, the first being id {}",
                              edge.count, id));
}

void check_box(Examined& set, std::vector<std::string>& notes) {
  Snapshot& s = set.share;
  const double box = s.header.box_size;
  if (s.header.comoving && !(box > 0 && std::isfinite(box))) {
    throw Error(fmt::format("'{}' has the box size {}", set.source, box), "a comoving set is periodic",
                "set BoxSize in the header");
  }
  if (!(box > 0)) return;
  const auto outside = set.find([&](std::size_t i) {
    return std::any_of(s.positions[i].begin(), s.positions[i].end(), [&](double x) { return x < 0 || x > box; });
  });
  if (outside.count > 0 && !s.header.comoving) {
    notes.push_back(fmt::format("{} particles lie outside the BoxSize {} of this isolated set: BoxSize is ignored",
                                outside.count, box));
    s.header.box_size = 0;
    return;
  }
  set.refuse(outside, [&](std::size_t i) {
    const auto& x = s.positions[i];
    return Error(fmt::format("'{}': {} lies outside the box", set.source, set.name_of(i)),
                 fmt::format("at ({:g}, {:g}, {:g}) in a box of {:g}; {} such particles", x[0], x[1], x[2], box,
                             outside.count),
                 "check BoxSize and the length unit, or wrap the positions into [0, BoxSize)");
  });
  wrap_edge(set, notes);
}

void check_distinct(const Examined& set) {
  const auto twins = find_twins(set.share, set.ranks);
  if (!twins) return;
  const auto& x = twins->position;
  throw Error(fmt::format("'{}': two particles at one point", set.source),
              fmt::format("ids {} and {} at ({:.9g}, {:.9g}, {:.9g})", twins->ids[0], twins->ids[1], x[0], x[1], x[2]),
              "remove one of them or move them apart");
}

}  // namespace

void check_snapshot(Snapshot& snapshot, const std::string& source, std::vector<std::string>& notes,
                    const Communicator& ranks) {
  Examined set(snapshot, source, ranks);
  if (set.total() == 0) {
    throw Error(fmt::format("'{}' holds no particles", source), "",
                "check the file; a run needs at least one particle");
  }
  check_finite(set);
  check_masses(set);
  check_box(set, notes);
  check_distinct(set);
}

}  // namespace maki
