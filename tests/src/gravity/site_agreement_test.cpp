#include "src/gravity/site_agreement.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/error.hpp"
#include "src/gravity/tree_imports.hpp"
#include "tests/messages.hpp"
#include "tests/sites/replayed_sites.hpp"

namespace maki {
namespace {

using namespace test;

void at_each_site(int count, const std::function<void(int, SiteAgreement&)>& work) {
  replay_sites(count, [&](sites::Sites& sites) {
    SiteAgreement steps(sites);
    work(sites.me(), steps);
  });
}

// The work of each step.
void at_each_step(int sites, std::uint64_t count, const std::function<void(int, std::uint64_t, SiteAgreement&)>& work) {
  at_each_site(sites, [&](int me, SiteAgreement& steps) {
    for (std::uint64_t n = 0; n < count; ++n) {
      steps.begin();
      work(me, n, steps);
      steps.publish();
    }
  });
}

// Lists of 1000 particles; `a_particle`: interactions of each.
StepSums sums_of_lists(double a_particle) {
  StepSums sums;
  sums.members = 1000;
  sums.groups = 20;
  sums.interactions = sums.largest = 1000 * a_particle;
  return sums;
}

// Rebuilds until lists are kept.
int rebuilds_at_once(RebuildJudge& judge) {
  int count = 1;
  while (judge.pauses()) ++count;
  judge.begin(sums_of_lists(500), true);
  return count;
}

// Where particles move far in a step, the first kept lists may already cost more than a rebuild. They are tried again
// after ever more rebuilds, until they pay.
TEST(RebuildJudge, ListsThatDoNotPayAreKeptMoreAndMoreSeldom) {
  RebuildJudge judge(2);
  std::vector<int> rebuilds;
  for (int trial = 0; trial < 9; ++trial) {
    rebuilds.push_back(rebuilds_at_once(judge));
    EXPECT_TRUE(judge.wants_rebuild(sums_of_lists(4000), 0.5));
  }
  EXPECT_EQ(rebuilds, (std::vector<int>{1, 2, 4, 8, 16, 32, 64, 64, 64}));
  EXPECT_EQ(rebuilds_at_once(judge), 64);
  EXPECT_FALSE(judge.wants_rebuild(sums_of_lists(600), 0.5));
  EXPECT_FALSE(judge.wants_rebuild(sums_of_lists(610), 0.5));
  EXPECT_TRUE(judge.wants_rebuild(sums_of_lists(4000), 0.5));  // not the first time
  EXPECT_EQ(rebuilds_at_once(judge), 1);
}

TEST(SiteAgreement, SumsAreUsedTwoEvaluationsLater) {
  at_each_step(3, 8, [](int me, std::uint64_t n, SiteAgreement& steps) {
    EXPECT_EQ(steps.number(), n);
    if (n == 0) {
      EXPECT_FALSE(steps.known());
    } else {
      const std::uint64_t of = n < 2 ? 0 : n - 2;
      EXPECT_EQ(steps.known(), of);
      for (int i = 0; i < 3; ++i)
        EXPECT_EQ(steps.all()[static_cast<std::size_t>(i)].particles, 100 * of + static_cast<std::uint64_t>(i));
      EXPECT_EQ(steps.tree().interactions, 3.0 * static_cast<double>(of) + 3);
      EXPECT_EQ(steps.tree().ranks, 6);
      EXPECT_EQ(steps.tree().largest, static_cast<double>(of) + 2);
      // Samples stay until others come.
      EXPECT_EQ(steps.works()[1].x.size(), of / 3 + 1);
    }
    steps.mine().particles = 100 * n + static_cast<std::uint64_t>(me);
    steps.mine().tree.interactions = steps.mine().tree.largest = static_cast<double>(n) + me;
    steps.mine().tree.ranks = 2;
    if (n % 3 == 0) steps.set_samples(std::vector<std::uint32_t>(n / 3 + 1, 7u));
    steps.decided(0.1 * static_cast<double>(n));
  });
}

TEST(SiteAgreement, WhatOneSiteWantsAllKnowAtTheSameStep) {
  at_each_step(2, 9, [](int me, std::uint64_t n, SiteAgreement& steps) {
    EXPECT_EQ(steps.requests(), (n >= 5 + 2 ? 1u : 0u) | (n == 4 + 2 ? 2u : 0u)) << n;
    steps.request((n >= 5 && me == 1 ? 1u : 0u) | (n == 4 && me == 0 ? 2u : 0u));
  });
}

// No site removes the restart from which all will go on, also where restarts fail by turns.
TEST(SiteAgreement, TheNewestRestartThatAllHaveIsKnown) {
  constexpr std::uint64_t kNewest[3][9] = {{0, 10, 20, 20, 40, 40, 60, 60, 80},
                                           {0, 10, 20, 30, 30, 50, 50, 70, 80},
                                           {0, 10, 20, 30, 40, 50, 60, 70, 80}};
  at_each_step(3, 11, [&](int me, std::uint64_t n, SiteAgreement& steps) {
    if (n >= 3) {
      EXPECT_EQ(steps.common_restart(), n < 4 ? 10u : n < 10 ? 20u : 80u) << n;
    }
    steps.has_restart(kNewest[me][n < 9 ? n : 8]);
  });
}

// Nobody has to be waited for.
TEST(SiteAgreement, ASiteAloneKnowsItsOwnAtOnce) {
  sites::Sites sites(Communicator::self(), "alone");
  SiteAgreement steps(sites);
  for (std::uint64_t n = 0; n < 4; ++n) {
    steps.begin();
    steps.request(n);
    EXPECT_EQ(steps.requests(), n);
    EXPECT_EQ(steps.farthest(0.5, 3.0), 3);
    steps.has_restart(n);
    EXPECT_EQ(steps.common_restart(), 0u);
    steps.mine().particles = 7 + n;
    steps.publish();
    EXPECT_EQ(steps.known(), n);
    EXPECT_EQ(steps.all().front().particles, 7 + n);
  }
  EXPECT_EQ(sites.sum(sites::Phase::kOutput, 1, 5.0), 5.0);
}

TEST(SiteAgreement, SitesThatDecideDifferentlyAreFoundOut) {
  const auto errors = errors_at_sites(2, [](sites::Sites& sites) {
    SiteAgreement steps(sites);
    for (int n = 0; n < 6; ++n) {
      steps.begin();
      steps.decided(n == 3 && sites.me() == 1 ? 0.25 : 0.5);
      steps.publish();
    }
  });
  for (const auto& error : errors) expect_contains(error, {"north and east are not in step", "by evaluation 3"});
}

// The last bits of a step's length are each processor's own.
TEST(SiteAgreement, RoundingIsNoDifference) {
  at_each_step(2, 5, [](int me, std::uint64_t, SiteAgreement& steps) { steps.decided(0.3 * (1 + me * 1e-16)); });
}

// Every site takes the furthest of all and the fastest of all, from when they were so.
TEST(SiteAgreement, NobodyIsFartherThanTheFastestCouldHaveCome) {
  at_each_step(2, 5, [](int me, std::uint64_t n, SiteAgreement& steps) {
    const double t = 0.5 * static_cast<double>(n);
    const double far = steps.farthest(t, me == 0 ? 10 + t : 1), known = t - 1;  // two evaluations ago
    if (n == 0) {
      EXPECT_EQ(far, 10);
    } else if (n > 1) {
      EXPECT_NEAR(far, 10 + known + 1 * (3 + 2 * 0.25 * 1), 1e-12);
    }
    steps.mine().momentum = me == 0 ? 1 : 3;
    steps.mine().acceleration = me == 0 ? 0.25 : 0.125;
  });
}

// What site north says of the sums of site east, once these are changed.
std::string refusal_of(const std::function<void(SiteMeasures&)>& change, std::size_t bytes_left_out = 0) {
  const auto call = [](sites::Sites& sites) {
    SiteAgreement steps(sites);
    steps.begin();
    steps.set_samples({7, 8});
    steps.publish();
  };
  sites::ReplayRing::Sent sent = replay_sites(2, call);
  sites::Message& message = sent[{0, 1, static_cast<int>(sites::Phase::kSums)}].front().second;
  SiteMeasures sums;
  std::memcpy(&sums, message.data(), sizeof sums);
  change(sums);
  std::memcpy(message.data(), &sums, sizeof sums);
  message.resize(message.size() - bytes_left_out);
  sites::Sites north(std::make_unique<sites::ReplayRing>(sent, 2, 0), replayed_names(2), Communicator::self());
  return error_of([&] { call(north); });
}

TEST(SiteAgreement, SumsThatCannotBeAreRefusedAndTheirSiteNamed) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
  const std::string east = "the sums that site east sends cannot be taken";
  EXPECT_EQ(refusal_of([](SiteMeasures&) {}), "");
  expect_contains(refusal_of([](SiteMeasures&) {}, 20), {east, "too short"});
  for (const std::uint64_t samples :
       {std::uint64_t{1}, std::uint64_t{3}, (std::uint64_t{1} << 62) + 2, ~std::uint64_t{0}})
    expect_contains(refusal_of([&](SiteMeasures& sums) { sums.samples = samples; }), {east, "another size"});
  for (const auto number : {&SiteMeasures::acceleration, &SiteMeasures::momentum, &SiteMeasures::mean_square_momentum,
                            &SiteMeasures::work, &SiteMeasures::force_cost, &SiteMeasures::reach_length})
    for (const double value : {kNan, kInf, -2.0})
      expect_contains(refusal_of([&](SiteMeasures& sums) { sums.*number = value; }), {east, "not finite"});
  EXPECT_EQ(refusal_of([](SiteMeasures& sums) { sums.mean_logarithm = -2; }), "");
  for (const auto number : {&SiteMeasures::mean_logarithm, &SiteMeasures::time})
    expect_contains(refusal_of([&](SiteMeasures& sums) { sums.*number = kNan; }), {east, "not finite"});
  expect_contains(refusal_of([](SiteMeasures& sums) { sums.time = -2; }), {east, "of another time"});
  expect_contains(refusal_of([&](SiteMeasures& sums) { sums.tree.reference = kInf; }), {east, "not finite"});
}

GravityOptions over_sites() {
  GravityOptions options;
  options.mesh.cells = 64;
  options.law = make_force_law(Split::kPolynomial, 4, 3.0f / 64, Softening::kPlummer, 1e-4);
  return options;
}

// Groups of one site that have come too near to another's undivided cells: all sites rebuild, and at the same step.
TEST(AllSites, RebuildWhereAnImportIsOutgrown) {
  at_each_site(2, [](int me, SiteAgreement& agreement) {
    PhaseTimers timers;
    AllSites all(agreement, over_sites(), timers);
    std::string wanted;
    for (int n = 0; n < 8; ++n) {
      agreement.begin();
      wanted += all.rebuild_is_wanted() ? 'R' : '.';
      all.outgrown = n == 3 && me == 1 ? 1 : 0;
      StepSums sums;
      sums.interactions = sums.members = sums.groups = 1;
      all.tell({sums, 1, 1, false, false}, {});
      agreement.publish();
    }
    EXPECT_EQ(wanted, ".....R..");
  });
}

// Particles of a slab and of the one beyond the next may both have moved by the most that lists allow.
TEST(AllSites, SlabsAreThickerThanTheReachOfForcesAndDrifts) {
  const double r_cut = 3.0 / 64, least = r_cut * (1.02 + 2 * TreeDrift::kMostOfCutoff);
  EXPECT_GE(thinnest_slab(r_cut, 0, 3), least * (1 - 1e-6));
  at_each_site(3, [&](int, SiteAgreement& agreement) {
    PhaseTimers timers;
    AllSites all(agreement, over_sites(), timers);
    const auto slabs = [](double thickness) {
      const auto end = static_cast<std::uint32_t>(thickness * kSideToUnits);
      return sites::Slabs(std::vector<std::uint32_t>{0, end, end + (1u << 31)});
    };
    EXPECT_THROW(all.set_slabs(slabs(0.99 * least)), Error);
    EXPECT_NO_THROW(all.set_slabs(slabs(0.25)));
  });
}

TEST(AllSites, SlabsOfADoubledBoxAreHalfAsThick) {
  at_each_site(2, [](int, SiteAgreement& agreement) {
    PhaseTimers timers;
    GravityOptions options;
    options.periodic = false;
    options.law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 1e-3);
    options.slabs = {0, 1u << 30};
    AllSites all(agreement, options, timers);
    sites::Slabs doubled = all.slabs();
    doubled.double_box();
    all.double_box();
    EXPECT_TRUE(all.slabs() == doubled);
    EXPECT_NE(all.slabs().starts()[1], options.slabs[1]);
  });
}

}  // namespace
}  // namespace maki
