// Runs the tests that need ranks, alike on all ranks of a job; rank 0 sums up. A test fails when it fails on any rank.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "host/comm/communicator.hpp"
#include "host/comm/device_payload.hpp"
#include "host/comm/job.hpp"
#include "kernels/device/buffer.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/error.hpp"
#include "tests/test_stream.hpp"

namespace maki::test {
namespace {

// A ring: a rank hears of its neighbour only, and so of a lost rank by others that wait in turn.
void pass_around(const Communicator& ranks) {
  std::vector<char> out(100000, 'x'), in(out.size());
  const Communicator::Outgoing to{(ranks.rank() + 1) % ranks.size(), out.data(), out.size()};
  const Communicator::Incoming from{(ranks.rank() + ranks.size() - 1) % ranks.size(), in.data(), in.size()};
  ranks.exchange({&to, 1}, {&from, 1});
}

// The same between device memories; by NCCL only the stream waits, and the host for that.
void pass_around(DevicePayload& payload) {
  const Stream& stream = test_stream();
  DeviceBuffer<char> out("sent", 100000), in("received", out.size());
  out.fill_zero(stream);
  const int ranks = payload.ranks().size(), rank = payload.ranks().rank();
  const Communicator::Outgoing to{(rank + 1) % ranks, out.data(), out.size()};
  const Communicator::Incoming from{(rank + ranks - 1) % ranks, in.data(), in.size()};
  payload.exchange(stream, {&to, 1}, {&from, 1});
  stream.synchronize();
}

[[noreturn]] void exhaust_memory() {
  pool_set_limit(1);
  const DeviceBuffer<double> lists("interaction lists", 1 << 22);
  throw Error("the limit was not kept");
}

std::atomic<bool> done_with_work = false;

}  // namespace

// A job that goes on until one of its ranks is lost.
// Every rank prints "rank R is process P" and makes the calls named for five minutes: "barrier", "sum", "exchange" (a
// ring), "row" (a barrier of pairs of ranks, then of all), "asleep" (no call at all, as in another library's), "fail"
// (rank 2 throws), "memory" (rank 2 has too little), "leave" (rank 2 comes to its end alone). Whoever started the job
// stops or ends one of the ranks meanwhile. "work" ends well; rank 2 makes no call before it gets SIGUSR1.
int run_until_lost(const std::string& calls) {
  const auto world = Communicator::world();
  const auto pair = world.split(world.rank() / 2, 0);
  std::optional<DevicePayload> payload;
  if (calls == "payload") payload.emplace(world);
  std::signal(SIGUSR1, [](int) { done_with_work = true; });
  std::printf("rank %d is process %d\n", world.rank(), static_cast<int>(getpid()));
  std::fflush(stdout);
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
       std::chrono::steady_clock::now() < end;) {
    if (calls == "fail" && world.rank() == 2) throw Error("no more paper", "it was all used", "get some");
    if (calls == "memory" && world.rank() == 2) exhaust_memory();
    if (calls == "asleep") std::this_thread::sleep_until(end);
    while (calls == "work" && world.rank() == 2 && !done_with_work)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (calls == "leave" && world.rank() == 2) return 0;
    std::vector<double> values{1.0 * world.rank()};
    if (calls == "sum") world.sum(values);
    if (calls == "exchange") pass_around(world);
    if (payload) pass_around(*payload);
    if (calls == "row") pair.barrier();
    if (calls != "exchange" && !payload) world.barrier();
    if (calls == "work") return 0;
  }
  return 0;
}

}  // namespace maki::test

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
