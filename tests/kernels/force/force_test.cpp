// evaluate_lists and direct_sum as the rest of the program calls them, on the device of this build.
#include "kernels/force/force.hpp"

#include <gtest/gtest.h>

#include "tests/kernels/force/lists_on_device.hpp"
#include "tests/kernels/particles/sets.hpp"
#include "tests/test_stream.hpp"

namespace maki::force_test {
namespace {

TEST(EvaluateLists, AgreesWithTheFormulas) {
  const RandomSet set = random_lists({1, 3, 31, 32, 33, 64, 65, 100, 128, 129, 300}, 100, 200, 0.01, 1.0, 7);
  for (const ForceLaw& law : laws_for(0.012, 2e-4))
    for (const bool quadrupoles : {true, false})
      for (const bool potential : {true, false}) check_lists(law, quadrupoles, potential, set, 7);
}

TEST(EvaluateLists, OnlySelectedGroups) {
  const RandomSet set = random_lists({10, 20, 30, 40}, 5, 5, 0.01, 1.0, 8);
  const ForceLaw law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 2e-4);
  Uploaded device(test::test_stream(), set);
  const std::vector<std::uint32_t> chosen{3, 1};
  const Result all = device.run(law, true, true), some = device.run(law, true, true, &chosen);
  for (std::size_t g = 0; g < set.groups.size(); ++g) {
    const std::uint32_t first = set.groups[g].first;
    for (std::uint32_t i = first; i < first + set.groups[g].count; ++i) {
      EXPECT_EQ(some.ax[i], g % 2 ? all.ax[i] : kUntouched);
      EXPECT_EQ(some.p[i], g % 2 ? all.p[i] : kUntouched);
    }
  }
  const std::vector<std::uint32_t> none;
  const Result nothing = device.run(law, true, true, &none);
  for (const float x : nothing.ax) EXPECT_EQ(x, kUntouched);
}

TEST(DirectSum, AgreesWithTheFormulas) {
  for (const ForceLaw& law : laws_for(0.21, 2e-3))
    for (const bool potential : {true, false}) check_direct(law, {700, 5, 301, potential, 4.9, 2e-6});
}

// Pairs' forces are equal and opposite, also for close pairs far from the others.
TEST(DirectSum, ConservesMomentum) {
  for (const std::size_t n : {2, 3, 64, 1000}) {
    std::vector<SourceParticle> set = testing::uniform_set(n, 10, 0.25, 0.75);
    set[1] = set[0];
    set[1].x += 300;
    const ForceLaw law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 256.0 / kSideToUnits);
    const Result f = run_direct(law, set, 0, static_cast<std::uint32_t>(n));
    double sum[3] = {}, size = 0;
    for (std::size_t i = 0; i < n; ++i) {
      sum[0] += double(set[i].mass) * f.ax[i];
      sum[1] += double(set[i].mass) * f.ay[i];
      sum[2] += double(set[i].mass) * f.az[i];
      size += set[i].mass * std::hypot(f.ax[i], f.ay[i], f.az[i]);
    }
    for (const double s : sum) EXPECT_LT(std::abs(s) / size, 2e-7) << n;
  }
}

TEST(DirectSum, ResolvesTheLastBits) {
  const ForceLaw law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 256.0 / kSideToUnits);
  const std::vector<SourceParticle> set = {{0x60000000u, 0x60000000u, 0x60000000u, 1.0f},
                                           {0x60000003u, 0x60000000u, 0x60000000u, 1.0f},
                                           {0x98765432u, 0x81234567u, 0x7abcdef0u, 1e-6f}};
  const Result f = run_direct(law, set, 0, 2);
  const double r = 3 / kSideToUnits;
  const double a = force_factor(law, r * r) * r;
  EXPECT_NEAR(f.ax[0] / a, 1, 1e-6);
  EXPECT_NEAR(f.ax[1] / a, -1, 1e-6);
}

TEST(DirectSum, NoTargetsAndOneParticle) {
  const ForceLaw law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 1e-3);
  EXPECT_EQ(run_direct(law, testing::uniform_set(5, 11, 0.25, 0.75), 2, 0).ax.size(), 0u);
  const Result f = run_direct(law, testing::uniform_set(1, 12, 0.25, 0.75), 0, 1);
  EXPECT_EQ(f.ax[0], 0.0f);
  EXPECT_EQ(f.p[0], 0.0f);
}

}  // namespace
}  // namespace maki::force_test
