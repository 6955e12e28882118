// Runs the tests that need ranks, alike on all ranks of a job; rank 0 sums up. A test fails when it fails on any rank.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "host/comm/job.hpp"
#include "tests/host/comm/until_lost_ranks.hpp"

namespace {

// Takes the place of the printer on all ranks but the first: failures only, with their rank.
class Failures : public testing::EmptyTestEventListener {
 public:
  explicit Failures(int rank) : rank_(rank) {}

 private:
  // googletest holds its lock while it reports a result, so the name is asked for here.
  void OnTestStart(const testing::TestInfo& test) override {
    test_ = std::string(test.test_suite_name()) + "." + test.name();
  }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s:\n%s\n", rank_, result.file_name() ? result.file_name() : "",
                 result.line_number(), test_.c_str(), result.message());
  }
  int rank_;
  std::string test_;
};

struct Summary {
  int passed = 0, failed = 0, skipped = 0;
};

Summary sum_up(const maki::Communicator& world) {
  const auto& unit = *testing::UnitTest::GetInstance();
  std::vector<std::uint64_t> failed, skipped;
  for (int s = 0; s < unit.total_test_suite_count(); ++s) {
    const auto& suite = *unit.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const auto& test = *suite.GetTestInfo(t);
      if (!test.should_run()) continue;
      failed.push_back(test.result()->Failed() || suite.ad_hoc_test_result().Failed());
      skipped.push_back(test.result()->Skipped());
    }
  }
  world.max(failed);
  world.max(skipped);
  Summary summary;
  for (std::size_t i = 0; i < failed.size(); ++i) {
    ++(failed[i] ? summary.failed : skipped[i] ? summary.skipped : summary.passed);
  }
  return summary;
}

int run() {
  const auto world = maki::Communicator::world();
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (world.rank() > 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new Failures(world.rank()));
  }
  GTEST_FLAG_SET(catch_exceptions, false);    // the other ranks could not go on with the next test
  const bool outside = RUN_ALL_TESTS() != 0;  // also what failed outside of any test
  const Summary summary = sum_up(world);
  if (world.rank() == 0) {
    std::fflush(stderr);
    std::printf("%d passed, %d failed", summary.passed, summary.failed);
    if (summary.skipped > 0) std::printf(", %d skipped", summary.skipped);
    std::puts("");
  }
  return outside || summary.failed > 0 || summary.passed + summary.skipped == 0;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    if (argc == 3 && std::string(argv[1]) == "--until-lost") return maki::test::run_until_lost(argv[2]);
    return run();
  } catch (const std::exception& error) {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    maki::abort_job((test ? std::string(test->test_suite_name()) + "." + test->name() + ": " : "") + error.what());
  }
}
