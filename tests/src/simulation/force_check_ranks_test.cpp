// The error of forces that a run measures at its outputs: against exact sums made apart from it, and the same over
// ranks and sites.
#include <algorithm>
#include <string>
#include <vector>

#include "src/run/forces.hpp"
#include "src/run/run_options.hpp"
#include "tests/force_errors.hpp"
#include "tests/src/simulation/recorded_runs.hpp"

namespace maki {
namespace {

using namespace testing;

constexpr const char* kUniverse = R"([box]
size = "50 Mpc/h"
[initial]
particles_per_side = 16
redshift = 9
[gravity]
mesh = 32
[time]
end_redshift = 8.5
[output]
redshifts = [9]
error_targets = 5000
energy_interval = 0
)";
constexpr const char* kSphere = R"([run]
kind = "isolated"
[initial]
kind = "plummer"
particles = 3000
[gravity]
softening = 0.02
theta = 0.8
[time]
end_time = 0.01
[output]
times = [0]
error_targets = 500
energy_interval = 0
)";

std::vector<ForceError> errors_of(const Prepared& run, const Snapshot& share, const RunPlace& place) {
  return run_on(run, share, simulation_options(run), place).force_errors;
}

ForceError at_start_alone(const Prepared& run) { return errors_of(run, run.initial, {}).front(); }

// rms difference over rms force, of all particles.
double error_of_set(const Prepared& run, ForceMethod exact) {
  const std::vector<std::size_t> all = spread_targets(run.initial.size(), 0);
  return force_errors(forces_of(run, ForceMethod::kRun, all).acceleration, forces_of(run, exact, all).acceleration).rms;
}

TEST(ForceCheck, IsTheErrorOfTheSet) {
  if (Communicator::world().size() > 1) GTEST_SKIP() << "one rank";
  const Prepared box = prepared(kUniverse, {"output.error_targets=1000000"});
  const ForceError of_box = at_start_alone(box);
  EXPECT_EQ(of_box.targets, 4096u);
  EXPECT_NEAR(of_box.rms / error_of_set(box, ForceMethod::kEwald), 1, 0.02);
  EXPECT_LE(of_box.median, of_box.percentile_99);

  const Prepared sphere = prepared(kSphere, {"gravity.opening=angle"});  // as the first forces of any run
  const ForceError of_sphere = at_start_alone(sphere);
  EXPECT_NEAR(static_cast<double>(of_sphere.targets), 500, 100);
  EXPECT_NEAR(of_sphere.rms / error_of_set(sphere, ForceMethod::kDirect), 1, 0.3);
}

TEST(ForceCheck, AnErrorAboveTheOneThatWasAskedForIsReported) {
  if (Communicator::world().size() > 1) GTEST_SKIP() << "one rank";
  const Prepared run = prepared(kUniverse, {"gravity.error=0.002", "output.error_targets=300"});
  for (const double theta : {0.3, 1.5}) {
    SimulationOptions options = simulation_options(run);
    options.gravity.theta = options.theta_early = theta;
    const Ends ends = run_on(run, run.initial, options, {});
    const auto warnings = std::ranges::count_if(ends.messages, [](const std::string& text) {
      return text.starts_with("Warning: this is more than");
    });
    ASSERT_EQ(ends.force_errors.size(), 2u);
    EXPECT_EQ(warnings, std::ranges::count_if(ends.force_errors, [](const ForceError& e) { return e.rms > 0.002; }));
    EXPECT_EQ(warnings > 0, theta > 1);
  }
}

void expect_same(const std::vector<ForceError>& a, const std::vector<ForceError>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].targets, b[i].targets);
    EXPECT_NEAR(a[i].rms / b[i].rms, 1, 1e-6);
    EXPECT_NEAR(a[i].median / b[i].median, 1, 1e-6);
    EXPECT_NEAR(a[i].percentile_99 / b[i].percentile_99, 1, 1e-6);
  }
}

TEST(ForceCheck, IsTheSameOverRanksAndSites) {
  const Communicator world = Communicator::world();
  if (world.size() < 2 || world.size() > 4) GTEST_SKIP() << "two to four ranks";
  const Prepared run = prepared(kUniverse, {"run.deterministic=true", "output.error_targets=300"});
  const std::vector<ForceError> alone = errors_of(run, run.initial, {});
  ASSERT_EQ(alone.size(), 2u);
  expect_same(errors_of(run, even_share(run.initial, world), world), alone);
  expect_same(run_over_sites(world, 2, run).force_errors, alone);
}

}  // namespace
}  // namespace maki
