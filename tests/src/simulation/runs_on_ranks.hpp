// Runs over ranks, and over sites made of ranks, beside the same on one.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "src/config/parse.hpp"
#include "src/run/over_sites.hpp"
#include "src/run/setup.hpp"
#include "src/run/start_run.hpp"
#include "src/simulation/simulation.hpp"
#include "tests/sites/sites_of_ranks.hpp"
#include "tests/src/io/io_helpers.hpp"
#include "tests/test_stream.hpp"

namespace maki::testing {

struct Ends {
  RunResult result;
  Snapshot state;  // this rank's share
  std::vector<StepMetrics> steps;
  std::vector<std::string> messages;
};

struct Recorder : RunObserver {
  explicit Recorder(Ends& ends) : ends(ends) {}
  void message(const std::string& text) override { ends.messages.push_back(text); }
  void step(const StepMetrics& metrics, const PhaseTimers&, double) override { ends.steps.push_back(metrics); }
  Ends& ends;
};

inline Prepared prepared(const char* toml, const std::vector<std::string>& settings) {
  return prepare(parse_config(toml, "test.toml", settings), true, Communicator::self());
}

inline Snapshot even_share(const Snapshot& set, const Communicator& ranks) {
  return test::rows_of(set, share_begin(set.size(), ranks.rank(), ranks.size()),
                       share_begin(set.size(), ranks.rank() + 1, ranks.size()));
}

inline Ends run_on(const Prepared& run, Snapshot share, const SimulationOptions& options, const RunPlace& place) {
  Ends ends;
  Recorder recorder(ends);
  Simulation simulation(test::test_stream(), std::move(share), options, timeline_of(run), recorder, place);
  ends.result = simulation.run();
  ends.state = simulation.snapshot();
  return ends;
}

// Of all ranks, on all of them.
inline std::map<std::uint64_t, std::array<double, 3>> all_positions(const Communicator& ranks, const Snapshot& share) {
  struct Row {
    std::uint64_t id;
    std::array<double, 3> position;
  };
  std::vector<Row> mine(share.size());
  for (std::size_t i = 0; i < share.size(); ++i) mine[i] = {share.ids[i], share.positions[i]};
  const std::uint64_t bytes = mine.size() * sizeof(Row);
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(&bytes, sizes.data(), sizeof bytes);
  std::vector<Row> all(std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}) / sizeof(Row));
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  char* place = reinterpret_cast<char*>(all.data());
  for (int r = 0; r < ranks.size(); ++r) {
    out.push_back({r, mine.data(), bytes});
    in.push_back({r, place, sizes[static_cast<std::size_t>(r)]});
    place += sizes[static_cast<std::size_t>(r)];
  }
  ranks.exchange(out, in);
  std::map<std::uint64_t, std::array<double, 3>> positions;
  for (const Row& row : all) positions[row.id] = row.position;
  return positions;
}

// rms distance over all particles and axes, of `side` apart at most.
inline double rms_distance(const std::map<std::uint64_t, std::array<double, 3>>& a,
                           const std::map<std::uint64_t, std::array<double, 3>>& b, double side) {
  double sum = 0;
  for (const auto& [id, position] : a)
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double d = position[axis] - b.at(id)[axis], wrapped = d - side * std::round(d / side);
      sum += wrapped * wrapped;
    }
  return std::sqrt(sum / static_cast<double>(a.size()));
}

inline void expect_same_everywhere(const Communicator& ranks, double value) {
  std::vector<double> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(&value, all.data(), sizeof value);
  for (const double other : all) EXPECT_EQ(other, value);
}

// An isolated set over `count` sites that these ranks are, each beginning with its slab.
inline Ends run_over_sites(const Communicator& world, int count, const Prepared& run) {
  const SitesOfRanks here(world, count);
  Prepared mine = run;
  mine.initial = even_share(run.initial, here.ranks);
  keep_own_slab(mine, *here.sites, here.ranks);
  const SimulationOptions options = simulation_options(mine);
  Ends ends = run_on(run, std::move(mine.initial), options, {here.ranks, *here.sites});
  here.sites->close();
  return ends;
}

}  // namespace maki::testing
