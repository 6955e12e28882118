#include "wan/sites/slabs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/messages.hpp"

namespace maki::sites {
namespace {

constexpr double kSide = 4294967296.0;

// Sites of known speeds on a known distribution of work: force time = work in the slab / speed.
class Model {
 public:
  Model(std::vector<double> speeds, bool clustered, double noise, unsigned seed)
      : speeds_(std::move(speeds)), noise_(noise), random_(seed) {
    std::lognormal_distribution<double> richness(0, 1);
    std::normal_distribution<double> offset(0, 0.01);
    std::uniform_real_distribution<double> anywhere(0, 1);
    std::vector<double> mass(30), centre(30);
    for (double& m : mass) m = richness(random_);
    for (double& c : centre) c = anywhere(random_);
    std::discrete_distribution<std::size_t> clump(mass.begin(), mass.end());
    for (int i = 0; i < 200000; ++i) {
      double x = anywhere(random_);
      if (clustered && i % 4 != 0) x = centre[clump(random_)] + offset(random_);
      work_.push_back(static_cast<std::uint32_t>((x - std::floor(x)) * kSide));
    }
    std::sort(work_.begin(), work_.end());
  }

  double work(const Slabs& slabs, int i) const { return static_cast<double>(at(slabs.end(i)) - at(slabs.begin(i))); }
  double time(const Slabs& slabs, int i) const { return work(slabs, i) / speeds_[static_cast<std::size_t>(i)]; }
  double difference(const Slabs& slabs) const {  // of true times
    double least = HUGE_VAL, most = 0;
    for (int i = 0; i < slabs.count(); ++i) {
      least = std::min(least, time(slabs, i));
      most = std::max(most, time(slabs, i));
    }
    return 1 - least / most;
  }

  // What the sites would say: times with noise, a few samples out of each slab.
  std::vector<SiteWork> measure(const Slabs& slabs, std::size_t samples) {
    std::normal_distribution<double> error(0, noise_);
    std::vector<SiteWork> sites(static_cast<std::size_t>(slabs.count()));
    for (int i = 0; i < slabs.count(); ++i) {
      SiteWork& site = sites[static_cast<std::size_t>(i)];
      site.force_cost = time(slabs, i) * std::exp(error(random_));
      site.work = work(slabs, i);
      site.particles = static_cast<std::uint64_t>(site.work);
      std::uniform_int_distribution<std::uint64_t> which(0, std::max<std::uint64_t>(site.particles, 1) - 1);
      const auto first = at(slabs.begin(i));
      while (site.x.size() < samples && site.particles > 0)
        site.x.push_back(first[static_cast<std::ptrdiff_t>(which(random_))]);
    }
    return sites;
  }

 private:
  std::vector<std::uint32_t>::const_iterator at(std::uint64_t x) const {
    return std::lower_bound(work_.begin(), work_.end(), x, [](std::uint32_t w, std::uint64_t v) { return w < v; });
  }

  std::vector<double> speeds_;
  double noise_;
  std::mt19937 random_;
  std::vector<std::uint32_t> work_;
};

// Of two sites with the same work.
std::vector<SiteWork> two_sites(double one_cost, double other_cost) {
  return {{.force_cost = one_cost, .work = 10, .particles = 5, .x = {}},
          {.force_cost = other_cost, .work = 10, .particles = 5, .x = {}}};
}

struct Trace {
  int settled = 0;        // cuts after which times differed by less than 5 % for good
  double late_worst = 0;  // largest difference of the last five
};

// As a run goes: where particles of slab i go is checked in each cut.
Trace settle(Model& model, int count, int cuts, std::size_t samples = 1000) {
  const SlabLimits limits{.thinnest = 0.03};
  Slabs slabs(count, limits.thinnest);
  Trace trace;
  for (int c = 1; c <= cuts; ++c) {
    const Slabs next = cut(slabs, model.measure(slabs, samples), limits);
    for (int i = 0; i < count; ++i) {
      EXPECT_GE(next.thickness(i), limits.thinnest - 1e-9);
      const double move = static_cast<double>(next.begin(i)) - static_cast<double>(slabs.begin(i));
      EXPECT_LE(std::abs(move), limits.move * kSide + 1);
      if (i > 0) {
        EXPECT_GE(next.begin(i), slabs.begin(i - 1) + static_cast<std::uint64_t>(0.0149 * kSide));
      }
      if (i + 1 < count) {
        EXPECT_LE(next.end(i), slabs.end(i + 1) - static_cast<std::uint64_t>(0.0149 * kSide));
      }
    }
    slabs = next;
    const double now = model.difference(slabs);
    if (now > 0.05) trace.settled = c + 1;
    if (c > cuts - 5) trace.late_worst = std::max(trace.late_worst, now);
  }
  return trace;
}

TEST(Slabs, EvenAtFirst) {
  const Slabs slabs(3, 0.1);
  EXPECT_EQ(slabs.count(), 3);
  EXPECT_EQ(slabs.begin(0), 0U);
  EXPECT_EQ(slabs.end(2), std::uint64_t{1} << 32);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(slabs.thickness(i), 1.0 / 3, 1e-9);
    EXPECT_EQ(slabs.site_of(slabs.begin(i)), i);
    EXPECT_EQ(slabs.site_of(static_cast<std::uint32_t>(slabs.end(i) - 1)), i);
  }
  EXPECT_EQ(Slabs(1, 0.4).end(0), std::uint64_t{1} << 32);
  EXPECT_EQ(Slabs(16, 0.0625).count(), 16);
}

TEST(Slabs, ThinOnesAreRefusedWithTheNumbers) {
  maki::test::expect_contains(maki::test::error_of([] { Slabs(16, 0.07); }),
                              {"slabs of 0.0625 sides are too thin", "0.07", "r_cut", "at most 14 sites"});
  EXPECT_THROW(Slabs(0, 0.0), Error);
  EXPECT_THROW(Slabs(std::vector<std::uint32_t>{1, 2}), Error);
  EXPECT_THROW(Slabs(std::vector<std::uint32_t>{0, 2, 2}), Error);
  EXPECT_THROW(Slabs(std::vector<std::uint32_t>{}), Error);
  EXPECT_THROW(cut(Slabs(3, 0), std::vector<SiteWork>(3), {.thinnest = 0.4}), Error);
  EXPECT_THROW(cut(Slabs(3, 0), std::vector<SiteWork>(2), {}), Error);
}

// Work spread evenly over two even slabs, the second site twice as fast: 1/3 is due, three quarters of the way is gone.
TEST(Slabs, SharesFollowSpeed) {
  const auto sites = two_sites(2, 1);
  const Slabs wide = cut(Slabs(2, 0), sites, {.thinnest = 0, .move = 1});
  EXPECT_NEAR(wide.thickness(0), 0.5 - 0.75 * (0.5 - 1.0 / 3), 1e-4);
  const Slabs limited = cut(Slabs(2, 0), sites, {.thinnest = 0, .move = 0.0625});
  EXPECT_EQ(limited.begin(1), (std::uint32_t{1} << 31) - (std::uint32_t{1} << 28));
  const Slabs thick = cut(Slabs(2, 0), sites, {.thinnest = 0.46875, .move = 1});
  EXPECT_NEAR(thick.thickness(0), 0.46875, 1e-9);
}

TEST(Slabs, EqualTimesAreAFixedPoint) {
  const Slabs uneven(std::vector<std::uint32_t>{0, 1000000001, 3000000001});
  std::vector<SiteWork> sites(3);
  for (std::size_t i = 0; i < 3; ++i)
    sites[i] = {.force_cost = 1.5, .work = 1.0 + static_cast<double>(i), .particles = 7, .x = {17, 4000000000}};
  EXPECT_EQ(cut(uneven, sites, {}), uneven);
  sites[1].force_cost = 1.525;  // noise
  EXPECT_EQ(cut(uneven, sites, {}), uneven);
  sites[1].force_cost = 1.7;
  EXPECT_NE(cut(uneven, sites, {}), uneven);
}

TEST(Slabs, NothingKnownMeansEqualShares) {
  const Slabs uneven(std::vector<std::uint32_t>{0, std::uint32_t{3} << 30});
  EXPECT_EQ(cut(uneven, std::vector<SiteWork>(2), {}), uneven);
  std::vector<SiteWork> sites(2);
  sites[0].particles = 3000;
  sites[1].particles = 1000;
  Slabs slabs = uneven;
  for (int i = 0; i < 20; ++i) {
    slabs = cut(slabs, sites, {});
    sites[0].particles = static_cast<std::uint64_t>(4000 * slabs.thickness(0));
    sites[1].particles = static_cast<std::uint64_t>(4000 * slabs.thickness(1));
  }
  EXPECT_NEAR(slabs.thickness(0), 0.5, 0.002);
}

// All work within one slab of four: the others get some from it, by way of the slabs between.
TEST(Slabs, EmptySitesGetWork) {
  const SlabLimits limits{.thinnest = 0.02};
  Slabs slabs(4, limits.thinnest);
  std::vector<std::uint32_t> work;
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) work.push_back(static_cast<std::uint32_t>((0.8 + 0.1 * random() / kSide) * kSide));
  const auto measure = [&] {
    std::vector<SiteWork> sites(4);
    for (std::uint32_t w : work) {
      SiteWork& site = sites[static_cast<std::size_t>(slabs.site_of(w))];
      site.x.push_back(w);
      site.work += 3;
      site.force_cost += 1e-3;
      ++site.particles;
    }
    return sites;
  };
  for (int i = 0; i < 40; ++i) slabs = cut(slabs, measure(), limits);
  const auto sites = measure();
  for (const SiteWork& s : sites) EXPECT_NEAR(static_cast<double>(s.particles), 5000, 300);
}

TEST(Slabs, StrayedSamplesCountAtTheNearerEnd) {
  const Slabs slabs(4, 0);
  std::vector<SiteWork> sites(4);
  for (SiteWork& s : sites) s = {.force_cost = 1, .work = 100, .particles = 100, .x = {}};
  sites[0].force_cost = 2;
  std::vector<SiteWork> strayed = sites;
  sites[0].x.assign(20, 0);
  strayed[0].x.assign(20, 4294960000U);  // just left of 0
  EXPECT_EQ(cut(slabs, sites, {}), cut(slabs, strayed, {}));
}

TEST(Slabs, BadTimesAreNone) {
  for (double bad : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    EXPECT_NEAR(cut(Slabs(2, 0), two_sites(2, bad), {}).thickness(0), 0.5, 1e-4);
}

TEST(Slabs, WasteIsTheSlowestOnesTimeBeyondTheBalancedOne) {
  EXPECT_EQ(waste(std::vector<SiteWork>(2)), 0);
  EXPECT_NEAR(waste(two_sites(2, 1)), 0.5, 1e-12);  // 20 / (5 + 10) s would do
  EXPECT_NEAR(waste(two_sites(2, 2)), 0, 1e-12);
  EXPECT_NEAR(waste(std::vector{two_sites(2, 1)[0], SiteWork{}}), 1, 1e-12);  // an idle site as fast as the other one
}

// Many slabs, most of them as thin as they may be, and any loads: boundaries stay in order, no slab gets too thin, and
// no boundary comes within half the thinnest of the old one beside it, so that particles go to neighbours only, strayed
// ones too.
TEST(Slabs, ManyThinOnesKeepTheirOrderAndTheirNeighbours) {
  std::mt19937 random(8);
  const auto number = [&random](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  for (int round = 0; round < 20000; ++round) {
    const auto count = 4 + static_cast<std::size_t>(random() % 5);
    const double thinnest = number(0.3, 1) / static_cast<double>(count);
    // What is left over goes to one slab, or to all.
    const double left = 1 - thinnest * static_cast<double>(count);
    const std::size_t wide = random() % count;
    std::vector<std::uint32_t> starts;
    double begin = 0;
    for (std::size_t i = 0; i < count; ++i) {
      starts.push_back(static_cast<std::uint32_t>(begin * kSide));
      begin += thinnest + (round % 2 ? left / static_cast<double>(count) : i == wide ? left : 0);
    }
    const Slabs now(starts);
    const SlabLimits limits{.thinnest = thinnest * (1 - 1e-8), .move = number(0.01, 1)};
    std::vector<SiteWork> sites(count);
    for (SiteWork& site : sites) {
      site = {.force_cost = std::exp(number(-3, 3)), .work = std::exp(number(-3, 3)), .particles = 10, .x = {}};
      for (std::size_t k = random() % 4; k > 0; --k) site.x.push_back(static_cast<std::uint32_t>(random()));
    }
    const Slabs next = cut(now, sites, limits);
    for (int i = 0; i < next.count(); ++i) {
      ASSERT_GE(next.thickness(i), limits.thinnest - 1e-9) << "round " << round << ", slab " << i;
      if (i == 0) continue;
      const double margin = 0.499 * thinnest * kSide, at = next.begin(i);
      ASSERT_GE(at, now.begin(i - 1) + margin) << "round " << round << ", slab " << i;
      ASSERT_LE(at, static_cast<double>(now.end(i)) - margin) << "round " << round << ", slab " << i;
    }
  }
}

// Two sites, one twice as fast, settle within twenty steps: in a run boundaries move in rebuilds, every three to five
// steps, so these are four to seven cuts.
TEST(Slabs, SettleWithinTwentyCutsAndStay) {
  const std::vector<std::vector<double>> machines = {{1, 1},    {1, 2},    {5, 1},       {1, 1, 1},    {2, 1, 1},
                                                     {1, 5, 1}, {1, 2, 5}, {1, 1, 1, 1}, {5, 1, 1, 2}, {1, 5, 5, 1}};
  for (const auto& speeds : machines)
    for (bool clustered : {false, true})
      for (unsigned seed : {11U, 12U, 13U}) {
        Model model(speeds, clustered, 0.01, seed);
        const Trace trace = settle(model, static_cast<int>(speeds.size()), 25);
        EXPECT_LT(trace.late_worst, 0.1);
        const int most = speeds != machines[1] ? 20 : clustered ? 6 : 4;
        EXPECT_LE(trace.settled, most) << speeds.size() << " sites, " << speeds[0] << ":" << speeds[1]
                                       << (clustered ? ", clustered" : ", uniform") << ", seed " << seed;
      }
}

// Times that vary by 5 % from cut to cut: boundaries follow by less than that.
TEST(Slabs, NoSwinging) {
  for (bool clustered : {false, true}) {
    Model model({1, 2}, clustered, 0.05, 3);
    EXPECT_LT(settle(model, 2, 60, 300).late_worst, 0.15);
  }
  // Times that rise with the square of the work would make a full step swing for ever.
  Slabs slabs(2, 0);
  double last = 0, width = 0;
  for (int i = 0; i < 12; ++i) {
    std::vector<SiteWork> sites(2);
    for (std::size_t s = 0; s < 2; ++s) {
      const double work = slabs.thickness(static_cast<int>(s));
      sites[s] = {.force_cost = work * work * (s == 0 ? 4 : 1), .work = work, .particles = 1000, .x = {}};
    }
    const Slabs next = cut(slabs, sites, {});
    width = std::abs(next.thickness(0) - slabs.thickness(0));
    if (i > 4) {
      EXPECT_LE(width, last + 1e-4);
    }
    last = width;
    slabs = next;
  }
  EXPECT_NEAR(slabs.thickness(0), 1.0 / 3, 0.01);
}

TEST(Slabs, StayWhereTheyAreWhenTheBoxDoubles) {
  Slabs slabs(std::vector<std::uint32_t>{0, 0x40000000u, 0x80000000u, 0x80000001u, 0x80000002u, 0xa0000003u});
  slabs.double_box();
  // As coordinates do, but that no slab vanishes.
  EXPECT_EQ(std::vector<std::uint32_t>(slabs.starts().begin(), slabs.starts().end()),
            (std::vector<std::uint32_t>{0, 0x60000000u, 0x80000000u, 0x80000001u, 0x80000002u, 0x90000001u}));
}

}  // namespace
}  // namespace maki::sites
