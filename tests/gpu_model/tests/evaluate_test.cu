// List evaluation and direct sum on the GPU against the formulas in double, for lists and groups of every shape.
#include <gtest/gtest.h>

#include "kernels/device/buffer.hpp"
#include "kernels/force/evaluate_lanes.cuh"
#include "tests/kernels/force/lists_on_device.hpp"
#include "tests/test_stream.hpp"

namespace maki::force_test {
namespace {

constexpr int kOrders = 20;  // each launch draws another order of threads

ForceLaw split_law(int order = 5) {
  return make_force_law(Split::kPolynomial, order, 0.012, Softening::kPlummer, 2e-4, 0.7 * order);
}
ForceLaw plain_law() { return make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 2e-4); }

void append_leaf(RandomSet& set, unsigned count, double width) {
  std::mt19937_64 random(9);
  std::uniform_real_distribution<double> uniform(-0.5, 0.5);
  const auto near = [&](std::uint32_t c) {
    return c + static_cast<std::uint32_t>(static_cast<std::int64_t>(uniform(random) * width * kSideToUnits));
  };
  const Group& g = set.groups[0];
  set.words.push_back(static_cast<std::uint32_t>(set.cell_first.size()));
  set.cell_first.push_back(static_cast<std::uint32_t>(set.particles.size()));
  set.cell_count.push_back(count);
  set.cells.push_back({});
  for (unsigned i = 0; i < count; ++i) set.particles.push_back({near(g.x), near(g.y), near(g.z), 1.0f});
  ++set.ranges[0].leaves;
}

TEST(EvaluateKernel, ShapesHoldEveryTargetAndWasteLittle) {
  for (unsigned count = 1; count <= cuda::kMostTargets; ++count) {
    const cuda::LaneShape s = cuda::choose_shape(count);
    EXPECT_GE(s.per_lane * s.lanes, count);
    EXPECT_LE(s.lanes * s.subsets, 32u);
    EXPECT_LT((s.lanes - 1) * s.per_lane, count) << "an empty lane";
    EXPECT_TRUE(count <= 32 || count * s.subsets >= 20 * s.per_lane) << count << ": less than 5 of 8 lanes used";
  }
  EXPECT_EQ(cuda::choose_shape(45).subsets, 2u);
  EXPECT_EQ(cuda::choose_shape(64).per_lane, 4u);
  for (unsigned left = 1000; left > 0;) {
    const unsigned part = cuda::size_of_part(left);
    ASSERT_TRUE(part > 0 && part <= left && part <= cuda::kMostTargets);
    left -= part;
  }
}

TEST(EvaluateKernel, EveryGroupSize) {
  const RandomSet set =
      random_lists({1, 2, 15, 16, 31, 32, 33, 45, 64, 65, 96, 127, 128, 129, 160, 161, 256}, 5, 7, 0.01, 1.0, 1);
  check_lists(split_law(), true, true, set);
  check_lists(plain_law(), false, false, set);
}

// Up to several batches of leaves and tiles of cells for each warp.
TEST(EvaluateKernel, EmptyAndOneSidedLists) {
  for (const auto& [leaves, cells] :
       {std::pair{0u, 0u}, {0u, 1u}, {0u, 9u}, {1u, 0u}, {3u, 0u}, {0u, 300u}, {170u, 0u}}) {
    const RandomSet set = random_lists({5, 64}, leaves, cells, 0.01, 1.0, 3);
    for (const bool quadrupoles : {true, false}) check_lists(plain_law(), quadrupoles, true, set);
  }
}

TEST(EvaluateKernel, HugeAndEmptyLeaves) {
  RandomSet set = random_lists({3}, 6, 2, 0.01, 1.0, 4);
  append_leaf(set, 0, 0.01);
  append_leaf(set, 3000, 0.01);
  append_leaf(set, 0, 0.01);
  append_leaf(set, 1, 0.01);
  check_lists(split_law(4), true, true, set);
  check_lists(plain_law(), true, false, set);
}

// Sources in arrays of their own (an imported tree), added to what the output holds. A source at a target's place is
// another particle.
TEST(EvaluateKernel, ImportedSourcesAreAdded) {
  const Stream& stream = test::test_stream();
  const RandomSet set = random_lists({20, 33, 64}, 4, 5, 0.01, 1.0, 11);
  Uploaded device(stream, set), sources(stream, set);
  const Result once = device.run(split_law(), true, false);
  SourceView view = sources.sources();
  view.targets = device.particles.data();
  for (const float before : {0.0f, 1e6f}) {
    Output out(stream, set.particles.size(), before);
    ForceOutput to = out.view(false);
    to.add = true;
    evaluate_lists(stream, split_law(), true, view, device.all(), to);
    const Result r = out.download(stream);
    for (const Group& g : set.groups)
      for (std::uint32_t i = g.first; i < g.first + g.count; ++i) {
        EXPECT_FLOAT_EQ(r.ax[i], before + once.ax[i]);
        EXPECT_FLOAT_EQ(r.ay[i], before + once.ay[i]);
        EXPECT_FLOAT_EQ(r.az[i], before + once.az[i]);
      }
  }
}

// A leaf of many particles at one point, cut into groups: own terms of all of them, not only of the group's.
TEST(EvaluateKernel, PiecesOfALeafAtOnePoint) {
  RandomSet set = random_lists({40}, 3, 2, 0.01, 1.0, 6);
  for (std::uint32_t i = 0; i < 40; ++i) set.particles[i] = {1u << 31, 1u << 30, 5, 1.0f};
  set.groups = {{0, 10, 1u << 31, 1u << 30, 5, 0, 0, 0}, {10, 30, 1u << 31, 1u << 30, 5, 0, 0, 0}};
  set.ranges = {set.ranges[0], set.ranges[0]};
  for (const ForceLaw& law : laws_for(0.012, 2e-4)) check_lists(law, true, true, set);
}

TEST(EvaluateKernel, ExactlyZeroBeyondTheCutoff) {
  RandomSet set = random_lists({64}, 0, 30, 0.0001, 1.0, 7);
  append_leaf(set, 50, 0.0001);
  set.groups[0].x += 1u << 27, set.groups[0].y -= 1u << 26;  // 1/32 and 1/64 of the side away
  for (std::uint32_t i = 0; i < 64; ++i) set.particles[i].x += 1u << 27, set.particles[i].y -= 1u << 26;
  Uploaded device(test::test_stream(), set);
  for (const Softening kind : {Softening::kPlummer, Softening::kSpline})
    for (const Split split : {Split::kPolynomial, Split::kS2})
      for (const bool quadrupoles : {true, false}) {
        const ForceLaw law = make_force_law(split, 5, 0.012, kind, 2e-4);
        const Result r = device.run(law, quadrupoles, true);
        for (std::uint32_t i = 0; i < 64; ++i)
          ASSERT_TRUE(r.ax[i] == 0 && r.ay[i] == 0 && r.az[i] == 0 && r.p[i] == 0) << name_of(law);
      }
}

TEST(EvaluateKernel, SameBitsInEveryOrderOfThreads) {
  const RandomSet set = random_lists({1, 45, 130}, 9, 40, 0.01, 1.0, 8);
  Uploaded device(test::test_stream(), set);
  for (const bool quadrupoles : {true, false}) {
    const Result first = device.run(split_law(4), quadrupoles, quadrupoles);
    for (int n = 0; n < kOrders; ++n) EXPECT_TRUE(device.run(split_law(4), quadrupoles, quadrupoles) == first);
  }
}

TEST(DirectKernel, SizesAndParts) {
  for (const std::uint32_t n : {1u, 2u, 127u, 255u, 256u, 257u, 600u}) check_direct(plain_law(), {n, 0, n, true});
  check_direct(split_law(), {600, 100, 300, false});
  check_direct(split_law(), {300, 299, 1, true});
}

TEST(DirectKernel, SameBitsInEveryOrderOfThreads) {
  const RandomSet set = random_lists({300}, 0, 0, 0.1, 1.0, 1);
  const Result first = run_direct(plain_law(), set.particles, 5, 40);
  for (int n = 0; n < kOrders; ++n) EXPECT_TRUE(run_direct(plain_law(), set.particles, 5, 40) == first);
}

}  // namespace
}  // namespace maki::force_test
