// A walk's decisions do not depend on the instruction set. Built for the CPU backend alone: _cpu.cpp.
#include <gtest/gtest.h>

#include "kernels/device/instruction_set.hpp"
#include "kernels/tree/opening.hpp"
#include "kernels/tree/walk_cpu.hpp"
#include "tests/kernels/tree/tree_set.hpp"

namespace maki {
namespace {

using testing::list_of;

TEST(Opening, Avx2AndScalarListsAreTheSame) {
  if (best_instruction_set() < InstructionSet::kAvx2) GTEST_SKIP() << "this CPU has no AVX2";
  for (const float r_cut : {0.0f, 0.1f}) {
    testing::TreeSet t(testing::clustered_set(10000, 4), 32, r_cut > 0 ? kPeriodicMinLevel : 0);
    const WalkTree view = view_of(t.tree, {.r_cut = r_cut});
    for (std::size_t g = 0; g < t.groups.size(); ++g) {
      const Group& group = t.groups.data()[g];
      const auto words = list_of(avx2::walk_group, view, group, t.tree.cells + 8);
      ASSERT_EQ(words, list_of(scalar::walk_group, view, group, t.tree.cells + 8)) << "group " << g;
    }
  }
}

// A root with eight children, each at its opening distance, or at the cutoff, but for a last bit or two: whatever is
// rounded in another way is decided in another way.
struct NearTies {
  std::mt19937 random;
  std::uniform_real_distribution<float> unit{0, 1};
  std::vector<std::uint32_t> com[3] = {coordinates(), coordinates(), coordinates()}, box[3] = {com[0], com[1], com[2]};
  std::vector<float> half[3] = {numbers(1e-3f), numbers(1e-3f), numbers(1e-3f)}, size = numbers(0),
                     offset = numbers(1e-3f);
  std::vector<std::uint32_t> count = std::vector<std::uint32_t>(17, 100),
                             first_child = std::vector<std::uint32_t>(17, 1);
  std::vector<std::uint8_t> child_count = std::vector<std::uint8_t>(17, 0);
  Group group{0,
              1,
              coordinate(),
              coordinate(),
              coordinate(),
              0.01f * unit(random),
              0.01f * unit(random),
              0.01f * unit(random),
              0.4f + 2 * unit(random)};
  WalkOptions options;
  std::vector<float> error_length = std::vector<float>(17, 0);

  explicit NearTies(unsigned seed) : random(seed) {
    child_count[0] = 8;
    options.theta = 0.3f + 0.7f * unit(random);
    const WalkTarget t = walk_target(group);
    if (seed % 2 == 0) {
      const float gap =
          box_gap_squared(t, BoxAway<float>{axis_distance(box[0][3], t.x), axis_distance(box[1][3], t.y),
                                            axis_distance(box[2][3], t.z), half[0][3], half[1][3], half[2][3]});
      options.r_cut = nudged(std::sqrt(gap) / kSideInUnits);
    }
    for (std::size_t c = 1; c < 9; ++c) {
      const float gap = point_gap_squared(t, axis_distance(com[0][c], t.x), axis_distance(com[1][c], t.y),
                                          axis_distance(com[2][c], t.z));
      size[c] = nudged((std::sqrt(gap) / kSideInUnits - offset[c]) * options.theta);
    }
    if (seed % 4 > 1) open_by_error();
  }
  // The same ties, of error lengths or of sizes that are the least.
  void open_by_error() {
    options.reference_acceleration = 10 * unit(random);
    const OpeningRule rule = options.rule();
    for (std::size_t c = 1; c < 9; ++c) {
      const float distance = size[c] / options.theta * kSideInUnits;
      error_length[c] = nudged(distance / group.error_scale / rule.of_error_length);
      size[c] = nudged((random() % 2 ? 0.5f : 1.0f) * distance / rule.of_size);
    }
  }
  std::uint32_t coordinate() { return 0x70000000u + static_cast<std::uint32_t>(random() % 0x20000000u); }
  std::vector<std::uint32_t> coordinates() {
    std::vector<std::uint32_t> v(17);
    for (std::uint32_t& x : v) x = coordinate();
    return v;
  }
  std::vector<float> numbers(float most) {
    std::vector<float> v(17);
    for (float& x : v) x = most * unit(random);
    return v;
  }
  float nudged(float x) {
    for (int k = static_cast<int>(random() % 5) - 2; k != 0; k -= k > 0 ? 1 : -1)
      x = std::nextafter(x, k > 0 ? 9.0f : 0.0f);
    return x;
  }
  WalkTree view() {
    return {{nullptr, count.data(), first_child.data(), child_count.data()},
            {com[0].data(), com[1].data(), com[2].data(), box[0].data(), box[1].data(), box[2].data(), half[0].data(),
             half[1].data(), half[2].data(), size.data(), offset.data(), error_length.data()},
            options.rule(),
            options.r_cut > 0,
            options.small_cell};
  }
  // As this file's compilation decides, cell by cell.
  testing::ListWords expected() const {
    testing::ListWords words;
    const WalkTarget t = walk_target(group);
    for (std::uint32_t c = 1; c < 9; ++c) {
      if (!within_reach(options.rule(),
                        box_gap_squared(t, BoxAway<float>{axis_distance(box[0][c], t.x), axis_distance(box[1][c], t.y),
                                                          axis_distance(box[2][c], t.z), half[0][c], half[1][c],
                                                          half[2][c]})))
        continue;
      const bool is_far =
          far_enough(point_gap_squared(t, axis_distance(com[0][c], t.x), axis_distance(com[1][c], t.y),
                                       axis_distance(com[2][c], t.z)),
                     opening_distance(options.rule(), t, CellSize<float>{size[c], error_length[c], offset[c]}));
      (is_far ? words.cells : words.leaves).push_back(c);
    }
    return words;
  }
};

TEST(Opening, NearTiesAreDecidedAlike) {
  const bool has_avx2 = best_instruction_set() >= InstructionSet::kAvx2;
  std::size_t cells = 0, leaves = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    NearTies ties(seed);
    const testing::ListWords expected = ties.expected();
    ASSERT_EQ(list_of(scalar::walk_group, ties.view(), ties.group, 64), expected) << "seed " << seed;
    if (has_avx2) {
      ASSERT_EQ(list_of(avx2::walk_group, ties.view(), ties.group, 64), expected) << "seed " << seed;
    }
    cells += expected.cells.size();
    leaves += expected.leaves.size();
  }
  EXPECT_GT(cells, 2000u);
  EXPECT_GT(leaves, 2000u);
}

// The rule in double, wherever it is not so close to the edge that rounding decides.
void expect_the_rule(testing::TreeSet& t, float reference_acceleration) {
  std::uint64_t near = 0, far = 0;
  const CellGeometryView g = t.tree.geometry.view();
  const WalkOptions options{.theta = 0.6f, .reference_acceleration = reference_acceleration, .r_cut = 0.07f};
  const OpeningRule rule = options.rule();
  for (std::size_t i = 0; i < t.groups.size(); i += 3) {
    const Group group = t.groups.data()[i];
    const WalkTarget target = walk_target(group);
    for (std::uint32_t c = 0; c < t.tree.cells; c += 2) {
      const auto gap = [](std::uint32_t a, std::uint32_t b, double h) {
        return std::max(0.0, std::abs(signed_difference(a, b) / kSideToUnits) - h);
      };
      const double point = std::hypot(gap(g.comx[c], group.x, group.hx), gap(g.comy[c], group.y, group.hy),
                                      gap(g.comz[c], group.z, group.hz));
      const double box =
          std::hypot(gap(g.x[c], group.x, double{group.hx} + g.hx[c]), gap(g.y[c], group.y, double{group.hy} + g.hy[c]),
                     gap(g.z[c], group.z, double{group.hz} + g.hz[c]));
      const double mass = t.tree.moments.data()[c].mass;
      const double error_length =
          reference_acceleration > 0
              ? group.error_scale *
                    std::pow(kErrorFactor / 8.0 * mass * std::pow(g.size[c], 3) / reference_acceleration, 0.2)
              : double{g.size[c]};
      const double least = double{kLeastDistance} * g.size[c];
      const double opening = std::max(error_length / double{options.theta}, least) + g.offset[c];
      const bool is_far = far_enough(g.centre_gap_squared(target, c), opening_distance(rule, target, g.size_of(c)));
      const bool reached = within_reach(rule, g.box_gap_squared(target, c));
      if (std::abs(point - opening) > 1e-6 * opening) {
        ASSERT_EQ(is_far, point > opening) << "group " << i << " cell " << c;
      }
      if (std::abs(box - 0.07) > 1e-6) {
        ASSERT_EQ(reached, box < 0.07) << "group " << i << " cell " << c;
      }
      ++(is_far ? far : near);
    }
  }
  EXPECT_GT(near, 1000u);
  EXPECT_GT(far, 1000u);
}

TEST(Opening, DecidesAsTheRuleSays) {
  testing::TreeSet t(testing::clustered_set(4000, 6), 32, 0);
  expect_the_rule(t, 0);
  t.know_errors();
  expect_the_rule(t, 0);
  expect_the_rule(t, 200);
}

}  // namespace
}  // namespace maki
