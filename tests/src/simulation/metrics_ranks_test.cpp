// What ranks tell rank 0, and the text that comes of it.
#include "src/simulation/metrics.hpp"

#include <gtest/gtest.h>

#include "src/simulation/step_log.hpp"

namespace maki {
namespace {

RankRecord record_of_rank(int rank, int step) {
  const auto r = static_cast<std::uint64_t>(rank);
  RankRecord record;
  record.particles = 100 + r;
  record.memory_high_water = 1000 * (r + 1);
  record.gravity.interactions = 10 * (r + 1);
  record.gravity.longest_list = 7 + r;
  record.gravity.let_bytes = r;
  record.phases = {{"tree", 2.0 + rank, 20, 1}, {"tree/evaluate", 1.0 + rank, 10, 1}};
  if (rank > 0) record.phases.insert(record.phases.begin() + 1, {"tree/LET", 0.5, 5, 1});  // not everywhere
  if (step > 0) record.phases.push_back({"energy", 0.25 * step, 1, 1});                    // not from the start
  return record;
}

TEST(RankRecords, ArriveAtTheFirstRankAsTheyWere) {
  const Communicator ranks = Communicator::world();
  RecordGatherer gatherer(ranks);
  for (int step = 0; step < 3; ++step) {
    const std::vector<RankRecord> all = gatherer.gather(record_of_rank(ranks.rank(), step));
    ASSERT_EQ(all.size(), ranks.rank() == 0 ? static_cast<std::size_t>(ranks.size()) : 0u);
    for (std::size_t r = 0; r < all.size(); ++r) {
      const RankRecord expected = record_of_rank(static_cast<int>(r), step);
      EXPECT_EQ(all[r].particles, expected.particles);
      EXPECT_EQ(all[r].memory_high_water, expected.memory_high_water);
      EXPECT_EQ(all[r].gravity.interactions, expected.gravity.interactions);
      EXPECT_EQ(all[r].phases.size(), expected.phases.size());
      for (const PhaseTime& phase : expected.phases) {
        EXPECT_EQ(phase_seconds(all[r], phase.path), phase.seconds) << phase.path;
        EXPECT_EQ(phase_total(all[r], phase.path), phase.total_seconds);
      }
    }
  }
}

TEST(RankRecords, AreToldAsSmallestMeanAndLargest) {
  std::vector<RankRecord> all;
  for (int r = 0; r < 3; ++r) all.push_back(record_of_rank(r, 1));
  EXPECT_EQ(phase_paths(all), (std::vector<std::string>{"tree", "tree/evaluate", "tree/LET", "energy"}));
  const GravityCounts counts = over_ranks(all);
  EXPECT_EQ(counts.interactions, 60u);
  EXPECT_EQ(counts.longest_list, 9u);
  EXPECT_EQ(counts.let_bytes, 3u);
  const Spread work = spread_of(all, [](const RankRecord& r) { return static_cast<double>(r.gravity.interactions); });
  EXPECT_EQ(work.min, 10);
  EXPECT_EQ(work.mean, 20);
  EXPECT_EQ(work.largest, 2);
  EXPECT_EQ(work.imbalance(), 1.5);

  StepMetrics metrics;
  metrics.time = 1;
  const std::string line = to_json(metrics, all);
  for (const char* part :
       {"\"interactions\": 60", "\"memory_high_water\": 3000", "\"tree/LET\": 0.333333",
        "\"interactions\": [10, 20, 30]", "\"interaction_imbalance\": 1.5", "\"evaluate_imbalance\": 1.5",
        "\"largest_memory_rank\": 2", "\"let_bytes\": 3", "\"tree\": [2, 3, 4]"})
    EXPECT_NE(line.find(part), std::string::npos) << part << " is missing in " << line;
  EXPECT_EQ(log_line(metrics, all).size(), log_columns(true, true).size());

  const std::string report = run_report(PhaseTimers(), all, 1);
  for (const char* part : {"\n  evaluate ", "\n  LET ", "interactions", "(most)"})
    EXPECT_NE(report.find(part), std::string::npos) << part << " is missing in\n" << report;
}

}  // namespace
}  // namespace maki
