// Gravity of one rank: mesh and tree side by side, and forces of an isolated set against the direct sum in double.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/error.hpp"
#include "kernels/measure/reductions.hpp"
#include "src/gravity/gravity.hpp"
#include "tests/force_errors.hpp"
#include "tests/kernels/particles/at_rest.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/src/gravity/shared_set.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

using namespace test;
using testing::ForceErrors;
using testing::isolated;

GravityOptions tree_and_mesh() {
  GravityOptions options;
  options.mesh.cells = 32;
  options.law = make_force_law(Split::kPolynomial, 4, 3.0f / 32, Softening::kPlummer, 1e-4);
  return options;
}

TEST(GravityStreams, BothRangesAtOnceAreTheSameToTheBit) {
  const Stream stream;
  const Communicator self = Communicator::self();
  const testing::Set set(testing::clustered_set(6000, 5));
  PhaseTimers timers;
  Particles one, other;
  for (Particles* particles : {&one, &other}) upload_share(stream, set, self, testing::dealt(self), *particles);
  Gravity together(tree_and_mesh(), timers), apart(tree_and_mesh(), timers);
  const auto bits = [&](const Gravity& g, const Particles& particles) {
    const VectorArray &s = g.short_acceleration(), &l = g.long_acceleration();
    return gather_bits(stream, self, set, particles,
                       {&s.x, &s.y, &s.z, &l.x, &l.y, &l.z, &g.short_potential(), &g.long_potential()});
  };
  for (int step = 0; step < 4; ++step) {  // new lists, kept lists, new lists by request
    if (step == 2) {
      together.request_rebuild();
      apart.request_rebuild();
    }
    together.evaluate(stream, one, Ranges::kBoth, true);
    apart.evaluate(stream, other, Ranges::kShort, true);
    apart.evaluate(stream, other, Ranges::kLong, true);
    EXPECT_EQ(bits(together, one), bits(apart, other)) << "step " << step;
    EXPECT_EQ(together.counts().rebuilt, apart.counts().rebuilt);
    EXPECT_EQ(together.counts().interactions, apart.counts().interactions);
  }
}

TEST(GravityStreams, WithoutAMeshBothRangesAreTheTreeAlone) {
  const Stream stream;
  GravityOptions options;
  options.periodic = false;
  options.law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 1e-3);
  PhaseTimers timers;
  Particles particles;
  testing::upload_at_rest(stream, testing::plummer_set(500, 5), particles);
  Gravity gravity(options, timers);
  gravity.evaluate(stream, particles, Ranges::kBoth, false);
  EXPECT_EQ(gravity.short_acceleration().size(), 500u);
  for (const float a : gravity.long_acceleration().x.download(stream)) EXPECT_EQ(a, 0);
}

// A mesh that fails beside the tree is an error of the step, and the next step is sound.
TEST(GravityStreams, AFailureOfTheMeshIsNotLost) {
  const Stream stream;
  PhaseTimers timers;
  Particles particles;
  auto set = testing::clustered_set(3000, 6);
  set[17].mass = -1;
  testing::upload_at_rest(stream, set, particles);
  Gravity gravity(tree_and_mesh(), timers);
  EXPECT_THROW(gravity.evaluate(stream, particles, Ranges::kBoth, false), Error);
  set[17].mass = set[16].mass;
  testing::upload_at_rest(stream, set, particles);
  gravity.request_rebuild();
  gravity.evaluate(stream, particles, Ranges::kBoth, false);
  EXPECT_EQ(gravity.long_acceleration().size(), set.size());
}

// Forces of an isolated set against the direct sum in double: how large the errors are, and how they fall with theta.

// Short-range forces on a set.
struct Tree {
  Tree(const GravityOptions& options, testing::Set of) : gravity(options, timers), set(std::move(of)) {
    upload_share(stream, set, Communicator::self(), testing::dealt(Communicator::self()), particles);
  }
  const GravityCounts& evaluate(bool potentials = false) {
    gravity.evaluate(stream, particles, Ranges::kShort, potentials);
    return gravity.counts();
  }
  testing::Forces forces() const { return gather(stream, Communicator::self(), set, particles, gravity); }
  // Each particle goes its own way on two axes, by up to half of `span` units of the last bit.
  void move(std::uint32_t span) {
    auto source = particles.source.download(stream);
    for (SourceParticle& p : source) {
      p.x += p.y / 977 % span - span / 2;
      p.y += p.z / 977 % span - span / 2;
    }
    particles.source.upload(stream, source);
  }

  const Stream& stream = test_stream();
  PhaseTimers timers;
  Gravity gravity;
  const testing::Set set;
  Particles particles;
};

// Of every `stride`-th particle, relative to |a|; where |a| is below `least` of its rms, relative to that. Counts go to
// *counts.
ForceErrors errors_of(const testing::Set& set, const GravityOptions& options, std::size_t stride,
                      GravityCounts* counts = nullptr, double least = 0.1) {
  Tree tree(options, set);
  tree.evaluate(true);
  if (options.open_by_error) {
    const StepMeasures found = step_measures(tree.stream, tree.particles, tree.gravity.short_acceleration(), nullptr);
    tree.gravity.reference_acceleration_is(reference_acceleration(found, tree.particles.size()));
    EXPECT_TRUE(tree.evaluate(true).rebuilt);
  }
  if (counts) *counts = tree.gravity.counts();
  return testing::force_errors(testing::every(stride, tree.forces().acceleration),
                               testing::exact_forces(set, options, stride).acceleration, least);
}

void report(const char* what, const ForceErrors& e) {
  std::printf("  %-34s median %.2e  99 %% %.2e  max %.2e  rms %.2e\n", what, e.median, e.p99, e.max, e.rms);
}

TEST(TreeAccuracy, QuadrupolesHaveAThirdOfTheErrorOfMonopoles) {
  for (const bool clustered : {false, true}) {
    const testing::Set set(clustered ? testing::clustered_set(32768, 2) : testing::plummer_set(32768, 1));
    const double softening = clustered ? 1e-6 : 1e-4;
    const ForceErrors quadrupole = errors_of(set, isolated(0.5, true, softening), 20);
    const ForceErrors monopole = errors_of(set, isolated(0.5, false, softening), 20);
    report(clustered ? "clustered, theta 0.5, quadrupoles" : "Plummer, theta 0.5, quadrupoles", quadrupole);
    report(clustered ? "clustered, theta 0.5, monopoles" : "Plummer, theta 0.5, monopoles", monopole);
    EXPECT_LE(quadrupole.median, 1.5e-4);
    EXPECT_LE(quadrupole.p99, clustered ? 1.5e-3 : 8e-4);
    EXPECT_LE(quadrupole.median, monopole.median / 3);
    if (!clustered) {
      EXPECT_LE(quadrupole.rms, monopole.rms / 3);
    }
  }
}

// Opened by estimated error, cells make forces as good as by the same angle (rms within a quarter, the worst better),
// with fewer interactions.
TEST(TreeAccuracy, ByEstimatedError) {
  const testing::Set set(testing::plummer_set(32768, 1));
  for (const double theta : {0.4, 0.7}) {
    GravityOptions options = isolated(theta, true, 1e-4);
    GravityCounts by_angle, by_error;
    const ForceErrors angle = errors_of(set, options, 20, &by_angle);
    options.open_by_error = true;
    const ForceErrors error = errors_of(set, options, 20, &by_error);
    report("Plummer, by angle", angle);
    report("Plummer, by estimated error", error);
    std::printf("  interactions a particle %.0f, %.0f\n", by_angle.mean_list, by_error.mean_list);
    EXPECT_LE(error.rms, 1.25 * angle.rms);
    EXPECT_LE(error.p99, angle.p99);
    EXPECT_LE(error.max, angle.max);
    EXPECT_LE(by_error.mean_list, 0.8 * by_angle.mean_list);
  }
}

// The pair has the rms acceleration nearly alone, 10^4 times that of others; forces on these are as good as without it.
TEST(TreeAccuracy, OneTightPairDoesNotLoosenTheForcesOnOthers) {
  std::vector<SourceParticle> stars = testing::plummer_set(32768, 1);
  GravityOptions options = isolated(0.5, true, 1e-7);
  options.open_by_error = true;
  const ForceErrors alone = errors_of(testing::Set(stars), options, 20, nullptr, 0);
  SourceParticle star = stars[1000];
  star.x += 400;  // units of the last bit: a softening length
  stars.push_back(star);
  const ForceErrors with_pair = errors_of(testing::Set(stars), options, 20, nullptr, 0);
  report("Plummer", alone);
  report("Plummer with a tight pair", with_pair);
  EXPECT_LE(with_pair.median, 1.3 * alone.median);
  EXPECT_LE(with_pair.p99, 1.3 * alone.p99);
}

// However large the angle is, no group takes a cell that holds some of it for a multipole.
TEST(TreeAccuracy, OfTheLargestAnglesIsThatOfTheLargestUseful) {
  std::vector<SourceParticle> cube;
  std::mt19937 random(5);
  for (int i = 0; i < 8000; ++i) {
    const auto x = [&random] { return static_cast<std::uint32_t>((1u << 30) + (random() >> 1)); };
    cube.push_back({x(), x(), x(), 1.f / 8000});
  }
  const testing::Set set(cube);
  const ForceErrors useful = errors_of(set, isolated(1.1, true, 1e-4), 5);
  const ForceErrors largest = errors_of(set, isolated(1.5, true, 1e-4), 5);
  report("cube, theta 1.1", useful);
  report("cube, theta 1.5", largest);
  EXPECT_LE(largest.rms, 1.5 * useful.rms);
  EXPECT_LE(largest.max, 3 * useful.max);
}

// The first term left out is the quadrupole's, theta^2 of a cell's own pull, or the octupole's, theta^3. Where the
// errors of a shell's theta^-3 cells add at random, the sum falls faster, by up to theta^1.5; quadrupoles gain one
// order.
TEST(TreeAccuracy, ErrorFallsWithThetaAtTheOrderOfTheExpansion) {
  const testing::Set set(testing::plummer_set(16384, 3));
  double orders[2] = {};
  for (const bool quadrupoles : {false, true}) {
    GravityOptions options = isolated(0.6, quadrupoles, 1e-4);
    options.leaf_size = 2;  // so that nearly all of the error is that of cells, at both angles
    options.group_size = 16;
    const double coarse = errors_of(set, options, 32).rms;
    options.theta = 0.3;
    const double fine = errors_of(set, options, 32).rms;
    const double order = std::log2(coarse / fine);
    std::printf("  order of the error in theta, %s: %.2f\n", quadrupoles ? "quadrupoles" : "monopoles", order);
    EXPECT_GE(order, quadrupoles ? 3.0 : 2.0);
    EXPECT_LE(order, quadrupoles ? 4.5 : 3.5);
    orders[quadrupoles] = order;
  }
  EXPECT_NEAR(orders[1] - orders[0], 1.0, 0.3);
}

// |sum m a| / sum m |a|.
double net_force(const GravityOptions& options) {
  const testing::Set set(testing::plummer_set(8192, 11));
  Tree tree(options, set);
  tree.evaluate(true);
  const testing::Forces forces = tree.forces();
  Vector3 net{};
  double total = 0;
  for (std::size_t i = 0; i < set.masses.size(); ++i) {
    const Vector3& a = forces.acceleration[i];
    for (std::size_t k = 0; k < 3; ++k) net[k] += set.masses[i] * a[k];
    total += set.masses[i] * std::hypot(a[0], a[1], a[2]);
  }
  return std::hypot(net[0], net[1], net[2]) / total;
}

TEST(TreeAccuracy, MomentumIsKept) {
  GravityOptions options = isolated(0.5, true, 1e-3);
  const double tree = net_force(options);
  options.direct = true;
  const double direct = net_force(options);
  std::printf("  |sum m a| / sum m |a|: tree %.1e, direct sum %.1e\n", tree, direct);
  EXPECT_LE(tree, 1e-4);
  EXPECT_LE(direct, 1e-7);
}

TEST(TreeAccuracy, TinySetsAreExact) {
  for (const std::size_t n : {1u, 2u, 3u, 17u}) {
    const testing::Set set(testing::uniform_set(n, 5, 0.3, 0.7));
    const GravityOptions options = isolated(0.5, true, 1e-3);
    Tree tree(options, set);
    tree.evaluate(true);
    const testing::Forces found = tree.forces(), exact = testing::exact_forces(set, options, 1);
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_NEAR(found.acceleration[i][0], exact.acceleration[i][0], 1e-6 * (std::abs(exact.acceleration[i][0]) + 1));
    if (n == 1) {
      EXPECT_EQ(found.potential[0], 0);
    }
  }
}

// Kept lists: the error on the last reused step stays within the tolerance of a fresh list's.
TEST(ListReuse, KeptListsStayWithinTheToleranceOfFreshOnes) {
  Tree tree(isolated(0.7, true, 1e-3), testing::Set(testing::plummer_set(20000, 7)));
  EXPECT_TRUE(tree.evaluate().rebuilt);
  EXPECT_GT(tree.gravity.counts().fresh_error, 0);
  int rebuilds = 0;
  double worst = 0;
  for (int step = 0; step < 60; ++step) {
    tree.move(300000);
    const GravityCounts& counts = tree.evaluate();
    rebuilds += counts.rebuilt;
    if (!counts.rebuilt) worst = std::max(worst, counts.probe_error / counts.fresh_error);
  }
  std::printf("  %d rebuilds in 60 steps, worst kept error %.2f of a fresh one\n", rebuilds, worst);
  EXPECT_GT(rebuilds, 0);
  EXPECT_LT(rebuilds, 40);
  EXPECT_LE(worst, 1.6);
}

// Lists that are no longer good enough serve no step.
TEST(ListReuse, AJumpReplacesAllListsInTheSameStep) {
  GravityOptions options = isolated(0.7, true, 1e-3);
  options.reuse_tolerance = 0.01;  // no kept list is so good
  Tree tree(options, testing::Set(testing::plummer_set(20000, 7)));
  tree.evaluate();
  tree.move(40000000);
  const GravityCounts& counts = tree.evaluate();
  ASSERT_FALSE(counts.rebuilt);
  EXPECT_EQ(counts.rewalked_groups, counts.groups);
}

// Which of some evaluations rebuild (R), with a drift before each.
std::string rebuilds(const GravityOptions& options, std::vector<SourceParticle> set, int steps, double drift) {
  Tree tree(options, testing::Set(std::move(set)));
  std::string pattern;
  for (int step = 0; step < steps; ++step) {
    tree.gravity.drifted(drift);
    pattern += tree.evaluate().rebuilt ? 'R' : '.';
  }
  return pattern;
}

// Particles that nobody told of do not count.
TEST(ListReuse, ABoxRebuildsWhenParticlesHaveGoneATwentiethOfTheCutoff) {
  const GravityOptions options = testing::periodic();
  EXPECT_EQ(rebuilds(options, testing::uniform_set(5000, 7), 8, 0.02 * options.law.r_cut), "R..R..R.");
}

TEST(ListReuse, FixedCountRebuildsEveryNSteps) {
  GravityOptions options = isolated(0.7, true, 1e-3);
  options.fixed_reuse = 4;
  EXPECT_EQ(rebuilds(options, testing::plummer_set(5000, 7), 9, 0), "R...R...R");
}

// In batches, with the same forces: GravityOverRanks.ListsInBatches.
TEST(ListReuse, ListsThatExceedTheBudgetAreMadeAnewInEveryStep) {
  GravityOptions options = isolated(0.6, true, 1e-3);
  options.list_budget = 100000;
  EXPECT_EQ(rebuilds(options, testing::plummer_set(20000, 7), 3, 0), "RRR");
}

}  // namespace
}  // namespace maki
