#include "wan/sites/site_trees.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

#include "tests/messages.hpp"
#include "tests/sites/tree_sites.hpp"

namespace maki::sites {
namespace {

using maki::testing::clustered_set, maki::testing::ForceErrors, maki::testing::to_fixed, maki::testing::uniform_set;
using testing::TreeSite, testing::TreeSites, testing::Vectors;

constexpr float kCutoff = 0.08f;

Slabs slabs_at(const std::vector<double>& starts) {
  std::vector<std::uint32_t> fixed;
  for (const double x : starts) fixed.push_back(to_fixed(x));
  return Slabs(fixed);
}

WalkOptions with_cutoff() { return {.r_cut = kCutoff}; }

ForceLaw split_law() { return make_force_law(Split::kPolynomial, 5, kCutoff, Softening::kPlummer, 1e-3); }
ForceLaw newton() { return make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 1e-4); }

// Clumps over the whole box, through its edges too.
std::vector<SourceParticle> periodic_clumps(std::size_t n, unsigned seed) {
  auto set = clustered_set(n, seed);
  for (auto& p : set) p.x = 2 * p.x + 0x80000000u, p.y = 2 * p.y + 0x40000000u, p.z *= 2;
  return set;
}

// What was imported acts as the whole trees would from which it was cut: but for roundings and other orders of sums.
// Relative to |a|, or to its hundredth part of the rms where |a| is less.
double difference_from_whole_trees(TreeSites& sites, const ForceLaw& law) {
  return maki::testing::force_errors(sites.forces(law), sites.forces_of_whole_trees(law), 0.01).max;
}
constexpr double kRounding = 1e-5;

ForceErrors errors(TreeSites& sites, const ForceLaw& law) {
  return testing::errors_of(law, sites.particles(), sites.forces(law));
}

// Cells that end at slabs' borders are not those of one tree: medians and 99 % are alike within a few per cent.
void expect_no_worse(const ForceErrors& found, const ForceErrors& one_tree) {
  EXPECT_LT(found.median, 1.05 * one_tree.median);
  EXPECT_LT(found.p99, 1.1 * one_tree.p99);
  EXPECT_GT(found.median, 0);
}

const std::vector<std::vector<double>> kCuts{
    {0}, {0, 0.5}, {0, 0.3}, {0, 0.85}, {0, 0.33, 0.67}, {0, 0.12, 0.8}, {0, 0.25, 0.5, 0.75}, {0, 0.1, 0.45, 0.55}};

// Where a border goes through a clump is chance, and so is the error of the one per cent whose forces are least.
TEST(SiteTrees, PeriodicForcesAreNoWorseThanOneTrees) {
  for (const bool clumps : {false, true}) {
    const auto set = clumps ? periodic_clumps(3000, 2) : uniform_set(3000, 1);
    const ForceErrors one_tree = testing::errors_of_one_tree(split_law(), with_cutoff(), set);
    for (const auto& cut : kCuts) {
      TreeSites sites(set, slabs_at(cut), with_cutoff());
      sites.rebuild();
      SCOPED_TRACE(::testing::PrintToString(cut));
      const ForceErrors found = errors(sites, split_law());
      EXPECT_LT(difference_from_whole_trees(sites, split_law()), kRounding);
      EXPECT_LT(found.median, 1.2 * one_tree.median);
      if (!clumps) expect_no_worse(found, one_tree);
    }
  }
}

TEST(SiteTrees, ForcesWithoutACutoffAreNoWorseThanOneTrees) {
  for (const bool clumps : {false, true}) {
    const WalkOptions walk;
    const auto set = clumps ? clustered_set(2000, 3) : uniform_set(2000, 3, 0.26, 0.74);
    const ForceErrors one_tree = testing::errors_of_one_tree(newton(), walk, set);
    for (const std::vector<double>& cut : {std::vector<double>{0}, {0, 0.5}, {0, 0.45, 0.6}, {0, 0.4, 0.5, 0.55}}) {
      TreeSites sites(set, slabs_at(cut), walk);
      sites.rebuild();
      SCOPED_TRACE(::testing::PrintToString(cut));
      const ForceErrors found = errors(sites, newton());
      EXPECT_LT(difference_from_whole_trees(sites, newton()), kRounding);
      EXPECT_LT(found.median, 1.2 * one_tree.median);
      if (cut.size() < 3) expect_no_worse(found, one_tree);  // other slabs are not made of a tree's cells
    }
  }
}

// Beyond the slab on either side, also across the box's edge.
std::uint32_t moved(std::uint32_t x, std::uint32_t hash, double by) {
  return x + to_fixed(by * (2.0 * (hash % 1024) / 1023 - 1));
}

TEST(SiteTrees, AfterADriftUpdateGivesTheForcesOfWhatHasMoved) {
  const float drift = 0.004f;
  for (const auto& cut : {std::vector<double>{0, 0.5}, {0, 0.3, 0.7}}) {
    TreeSites sites(uniform_set(3000, 4), slabs_at(cut), with_cutoff());
    sites.rebuild(drift);
    sites.move([&](SourceParticle& p) {
      const std::uint32_t hash = (p.x ^ p.y * 7919u) >> 7;
      p.x = moved(p.x, hash, drift);
      p.y = moved(p.y, hash >> 10, drift);
    });
    sites.update();
    expect_no_worse(errors(sites, split_law()),
                    testing::errors_of_one_tree(split_law(), with_cutoff(), sites.particles()));
  }
}

// One site's particles go beyond their slab: what they have imported allows for it, up to the drift and not further.
TEST(SiteTrees, DriftIsWhatParticlesMayMove) {
  for (const WalkOptions& w : {WalkOptions{.theta = 1}, with_cutoff()})
    for (const int sign : {1, -1})
      for (const double drift : {0.1, 0.0}) {
        const ForceLaw law = w.r_cut > 0 ? split_law() : newton();
        TreeSites sites(uniform_set(3000, 4, 0.26, 0.74), slabs_at({0, 0.42, 0.6}), w, {.skin = 0, .reach_skin = 0});
        sites.rebuild(static_cast<float>(drift));
        for (SourceParticle& p : sites.all[1].mine) p.x += static_cast<std::uint32_t>(sign) * to_fixed(0.1);
        sites.move([](SourceParticle&) {});
        sites.update();
        const Vectors found = sites.forces(law), whole = sites.forces_of_whole_trees(law);
        const std::size_t first = sites.all[0].mine.size(), end = first + sites.all[1].mine.size();
        const auto of_site = [&](const Vectors& all) {
          return Vectors(all.begin() + static_cast<long>(first), all.begin() + static_cast<long>(end));
        };
        const double most = maki::testing::force_errors(of_site(found), of_site(whole), 0.01).max;
        if (drift > 0)
          EXPECT_LT(most, kRounding) << "r_cut " << w.r_cut << ", " << sign;
        else
          EXPECT_GT(most, 10 * kRounding) << "r_cut " << w.r_cut << ", " << sign;
      }
}

TEST(SiteTrees, AreBuiltOfParticlesBeyondTheirSlab) {
  const float drift = 0.02f;
  TreeSites sites(uniform_set(3000, 5), slabs_at({0, 0.4, 0.6}), with_cutoff());
  sites.move([&](SourceParticle& p) { p.x = moved(p.x, (p.x ^ p.z) >> 9, drift); });
  sites.rebuild(drift);
  expect_no_worse(errors(sites, split_law()),
                  testing::errors_of_one_tree(split_law(), with_cutoff(), sites.particles()));
  EXPECT_LT(difference_from_whole_trees(sites, split_law()), kRounding);
}

TEST(SiteTrees, CompressedForcesAreNoWorseThanOneTrees) {
  const auto set = periodic_clumps(3000, 6);
  const Slabs halves = slabs_at({0, 0.5});
  TreeSites plain(set, halves, with_cutoff()), packed(set, halves, with_cutoff(), {.compress = true});
  for (TreeSites* s : {&plain, &packed}) {
    s->rebuild();
    for (TreeSite& site : s->all) site.take_traffic();
    s->update();
  }
  expect_no_worse(errors(packed, split_law()), testing::errors_of_one_tree(split_law(), with_cutoff(), set));
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_LT(static_cast<double>(packed.all[i].take_traffic().bytes_sent),
              0.65 * static_cast<double>(plain.all[i].take_traffic().bytes_sent));
}

TEST(SiteTrees, EmptySitesSendEmptyMessages) {
  WalkOptions walk;
  const auto set = clustered_set(1000, 7);  // within the middle half
  for (const std::vector<double>& cut : {std::vector<double>{0, 0.8}, {0, 0.2, 0.8}, {0, 0.1, 0.2, 0.5}}) {
    TreeSites sites(set, slabs_at(cut), walk);
    sites.rebuild();
    sites.update();
    for (TreeSite& site : sites.all) {
      EXPECT_EQ(site.take_traffic().messages_sent, 2 * (cut.size() - 1));
      EXPECT_EQ(site.trees->forest().cells == 0, site.mine.size() == set.size());
    }
    expect_no_worse(errors(sites, newton()), testing::errors_of_one_tree(newton(), walk, set));
  }
}

TEST(SiteTrees, OneSiteHasNoForest) {
  TreeSites sites(uniform_set(100, 8), Slabs(std::vector<std::uint32_t>{0}), with_cutoff());
  sites.rebuild();
  sites.update();
  EXPECT_EQ(sites.all[0].trees->forest().cells, 0u);
  EXPECT_EQ(sites.all[0].take_traffic().messages_sent, 0u);
}

TEST(SiteTrees, UpdatesSendNeitherShapesNorHeaders) {
  TreeSites sites(uniform_set(3000, 9), slabs_at({0, 0.3, 0.6, 0.8}), with_cutoff());
  sites.rebuild(0.001f);
  std::vector<Traffic> rebuilt;
  for (TreeSite& site : sites.all) rebuilt.push_back(site.take_traffic());
  sites.update();
  std::uint64_t saved = 0, cells = 0;  // the latter without the forests' own roots
  for (std::size_t i = 0; i < rebuilt.size(); ++i) {
    const Traffic updated = sites.all[i].take_traffic();
    EXPECT_EQ(updated.messages_sent, 2u);  // to its neighbours
    saved += rebuilt[i].bytes_sent - updated.bytes_sent;
    cells += sites.all[i].trees->forest().cells - 1;
  }
  EXPECT_EQ(saved, 4 * cells + rebuilt.size() * 2 * 40);
}

TEST(SiteTrees, AreNotBegunTwice) {
  TreeSites sites(uniform_set(500, 10), slabs_at({0, 0.5}), with_cutoff());
  TreeSite &a = sites.all[0], &b = sites.all[1];
  a.trees->finish(sites.stream);  // of nothing
  a.trees->rebuild(sites.stream, a.set.tree, a.particles(), sites.walk, {sites.slabs}, 1);
  EXPECT_THROW(a.trees->update(sites.stream, a.set.tree, a.particles(), 2), std::logic_error);
  b.trees->rebuild(sites.stream, b.set.tree, b.particles(), sites.walk, {sites.slabs}, 1);
  a.trees->finish(sites.stream);
  b.trees->finish(sites.stream);
}

TEST(SiteTrees, OtherSettingsAtAnotherSiteAreRefused) {
  const auto set = uniform_set(500, 11);
  TreeSites sites(set, slabs_at({0, 0.5}), with_cutoff());
  TreeSite &a = sites.all[0], &b = sites.all[1];
  b.trees = std::make_unique<SiteTrees>(*b.sites, LetOptions{.compress = true});
  a.trees->rebuild(sites.stream, a.set.tree, a.particles(), sites.walk, {sites.slabs}, 1);
  b.trees->rebuild(sites.stream, b.set.tree, b.particles(), sites.walk, {sites.slabs}, 1);
  maki::test::expect_contains(maki::test::error_of([&] { a.trees->finish(sites.stream); }), {"site1"});
}

// Distances on the circle to a slab that is wider by `drift`, in sides.
double distance_to_slab(double x, double begin, double end, double drift) {
  double least = 1;
  for (int image = -1; image <= 1; ++image) {
    const double at = x + image;
    least = std::min(least, std::max({0.0, begin - drift - at, at - end - drift}));
  }
  return least;
}

TEST(SlabTarget, DistancesAreToTheNearerFaceHoweverThickTheSlab) {
  std::mt19937_64 random(12);
  std::uniform_real_distribution<double> u(0, 1);
  for (const auto& cut : kCuts)
    for (const double drift : {0.0, 0.003, 0.1}) {
      const Slabs slabs = slabs_at(cut);
      for (int site = 0; site < slabs.count(); ++site) {
        const WalkTarget t = slab_target(slabs, site, true, static_cast<float>(drift));
        for (int k = 0; k < 200; ++k) {
          const double x = u(random), half = 0.1 * u(random);
          const std::uint32_t fixed = to_fixed(x), any = to_fixed(u(random)), other = to_fixed(u(random));
          const float dx = axis_distance(fixed, t.x), dy = axis_distance(any, t.y), dz = axis_distance(other, t.z);
          const double distance = distance_to_slab(x, slabs.begin(site) / kSideToUnits,
                                                   static_cast<double>(slabs.end(site)) / kSideToUnits, drift);
          EXPECT_NEAR(std::sqrt(point_gap_squared(t, dx, dy, dz)) / kSideToUnits, distance, 2e-7);
          const float h = static_cast<float>(half);
          EXPECT_NEAR(std::sqrt(box_gap_squared(t, BoxAway<float>{dx, dy, dz, h, h, h})) / kSideToUnits,
                      std::max(0.0, distance - half), 2e-7);
        }
      }
    }
}

TEST(SlabTarget, NoParticleOfTheSlabIsOutsideOfIt) {
  for (const auto& cut : kCuts) {
    const Slabs slabs = slabs_at(cut);
    for (int site = 0; site < slabs.count(); ++site) {
      const WalkTarget t = slab_target(slabs, site, true, 0);
      for (const std::uint64_t x : {std::uint64_t{slabs.begin(site)}, slabs.end(site) - 1})
        EXPECT_EQ(point_gap_squared(t, axis_distance(static_cast<std::uint32_t>(x), t.x), axis_distance(0, t.y),
                                    axis_distance(0x80000000u, t.z)),
                  0.0f);
    }
  }
}

TEST(SlabTarget, OfAnIsolatedSetIsWithinTheMiddleHalf) {
  const Slabs slabs = slabs_at({0, 0.1, 0.5});
  const auto gap = [&](int site, double x, double y) {
    const WalkTarget t = slab_target(slabs, site, false, 0.01f);
    return std::sqrt(point_gap_squared(t, axis_distance(to_fixed(x), t.x), axis_distance(to_fixed(y), t.y),
                                       axis_distance(to_fixed(0.5), t.z))) /
           kSideToUnits;
  };
  EXPECT_NEAR(gap(1, 0.26, 0.5), 0, 1e-7);
  EXPECT_NEAR(gap(1, 0.6, 0.5), 0.09, 1e-7);
  EXPECT_NEAR(gap(2, 0.3, 0.5), 0.19, 1e-7);   // and not 0.29 the other way around
  EXPECT_NEAR(gap(0, 0.75, 0.5), 0.49, 1e-7);  // of a slab that is outside: as if at the middle half's edge
}

// SUSHI (Groen et al. 2011), the middle term of eq. 12: bytes of local essential trees that a site sends in a step.
TEST(SiteTrees, BytesAreAtMostHalfMoreThanSushis) {
  const double side = 32;
  const float theta = 0.4f;
  const WalkOptions walk{.theta = theta, .r_cut = 3 / 32.0f};
  for (const int count : {2, 3}) {
    TreeSites sites(uniform_set(32 * 32 * 32, 61), Slabs(count, 0), walk, {.compress = true});
    sites.rebuild(0.1f / 32);
    for (TreeSite& site : sites.all) site.take_traffic();
    sites.update();
    for (TreeSite& site : sites.all)
      EXPECT_LT(static_cast<double>(site.take_traffic().bytes_sent), 1.5 * (48 / theta + 24) * side * side);
  }
}

}  // namespace
}  // namespace maki::sites
