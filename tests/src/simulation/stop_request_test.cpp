#include "src/simulation/stop_request.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace maki {
namespace {

std::string fresh_directory(const char* name) {
  const auto path = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path.string();
}

TEST(StopRequest, NothingAskedForIsNoReason) {
  const StopRequest request(fresh_directory("stop_none"), 0);
  EXPECT_EQ(request.reason(1e9), "");
}

TEST(StopRequest, SignalsAreRequests) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const StopRequest request(fresh_directory("stop_signal"), 0);
    std::raise(signal);
    EXPECT_EQ(request.reason(0), signal == SIGTERM ? "SIGTERM" : "SIGINT");
  }
  const StopRequest fresh(fresh_directory("stop_signal"), 0);
  EXPECT_EQ(fresh.reason(0), "");  // an old signal is forgotten
}

TEST(StopRequest, StopFileIsSeenOnceAndAnOldOneIgnored) {
  const std::string directory = fresh_directory("stop_file");
  std::ofstream(directory + "/stop").put('x');
  const StopRequest request(directory, 0);
  EXPECT_EQ(request.reason(0), "");
  std::ofstream(directory + "/stop").put('x');
  EXPECT_NE(request.reason(0), "");
  EXPECT_FALSE(std::filesystem::exists(directory + "/stop"));
}

TEST(StopRequest, TimeLimitCountsTheNextPieceOfWork) {
  const auto begin = std::chrono::steady_clock::now() - std::chrono::hours(1);
  const std::string directory = fresh_directory("stop_limit");
  EXPECT_EQ(StopRequest(directory, 7200, begin).reason(60), "");
  EXPECT_NE(StopRequest(directory, 7200, begin).reason(4000), "");
  EXPECT_NE(StopRequest(directory, 3000, begin).reason(0), "");
}

int seen = 0;
void see(int) { ++seen; }

TEST(StopRequest, HandlersOfOthersAreBackAfterwards) {
  const auto before = std::signal(SIGTERM, see);
  {
    const StopRequest request(fresh_directory("stop_handlers"), 0);
    std::raise(SIGTERM);
    EXPECT_EQ(request.reason(0), "SIGTERM");
  }
  std::raise(SIGTERM);
  EXPECT_EQ(seen, 1);
  {
    const StopRequest request("", 0, std::chrono::steady_clock::now(), false);
    std::raise(SIGTERM);
    EXPECT_EQ(request.reason(0), "");
  }
  EXPECT_EQ(seen, 2);
  std::signal(SIGTERM, before);
}

}  // namespace
}  // namespace maki
