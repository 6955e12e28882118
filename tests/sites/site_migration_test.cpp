#include "wan/sites/slabs.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/host/domain/fields.hpp"
#include "tests/messages.hpp"
#include "tests/sites/replayed_sites.hpp"

namespace maki::sites {
namespace {

constexpr std::uint64_t kParticles = 3000;

// Sites of one rank each, driven by one thread.
struct MovingSites {
  const Stream& stream = test::test_stream();
  Slabs slabs;
  struct Site : test::KnownParticles {
    std::unique_ptr<Sites> sites;
    std::unique_ptr<SiteMigration> migration;
  };
  std::vector<Site> all;
  std::uint64_t number = 0;

  explicit MovingSites(const Slabs& s, SiteMigration::Reach reach = SiteMigration::Reach::kNeighbours)
      : slabs(s), all(static_cast<std::size_t>(s.count())) {
    auto sites = maki::test::sites_in_memory(slabs.count());
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].sites = std::move(sites[i]);
      all[i].migration = std::make_unique<SiteMigration>(*all[i].sites, reach);
    }
  }
  int home(std::uint64_t id) const { return slabs.site_of(test::fields_of(id).source.x); }
  // Particle `id` starts at site start(id), ids ascending.
  template <class Start>
  void make(Start start) {
    std::vector<std::vector<std::uint64_t>> ids(all.size());
    for (std::uint64_t id = 0; id < kParticles; ++id) ids[static_cast<std::size_t>(start(id))].push_back(id);
    for (std::size_t i = 0; i < all.size(); ++i) all[i].make(stream, ids[i]);
  }
  std::vector<Migration> move() {
    ++number;
    for (Site& site : all) site.migration->begin(stream, slabs, site.particles, site.arrays(), number);
    std::vector<Migration> moved;
    for (Site& site : all) moved.push_back(site.migration->finish(stream, site.particles, site.arrays(), number));
    return moved;
  }
  // Those who stay in their order, then arrivals by site and in the order there; each with its fields.
  template <class Start>
  void expect_order(Start start) {
    for (int me = 0; me < slabs.count(); ++me) {
      std::vector<std::uint64_t> expected;
      const auto append_from = [&](int from) {
        for (std::uint64_t id = 0; id < kParticles; ++id)
          if (start(id) == from && home(id) == me) expected.push_back(id);
      };
      append_from(me);
      for (int site = 0; site < slabs.count(); ++site)
        if (site != me) append_from(site);
      Site& site = all[static_cast<std::size_t>(me)];
      EXPECT_EQ(site.particles.id.download(stream), expected);
      site.expect_fields_of_ids(stream);
    }
  }
};

Slabs slabs_of(std::vector<std::uint32_t> starts) { return Slabs(std::move(starts)); }

TEST(SiteMigration, BringsAllHomeFromTheNeighbours) {
  for (const Slabs& slabs : {slabs_of({0, 0x50000000u}), slabs_of({0, 0x30000000u, 0xc0000000u}),
                             slabs_of({0, 0x20000000u, 0x70000000u, 0x90000000u}),
                             slabs_of({0, 0x40000000u, 0x80000000u, 0x90000000u, 0xf0000000u})}) {
    MovingSites sites(slabs);
    const auto start = [&](std::uint64_t id) {  // at home or with a neighbour
      return (sites.home(id) + static_cast<int>(test::hash(id, 20) % 3) + slabs.count() - 1) % slabs.count();
    };
    sites.make(start);
    const auto moved = sites.move();
    sites.expect_order(start);
    std::uint64_t sent = 0, received = 0;
    for (const Migration& m : moved) {
      sent += m.sent;
      received += m.received;
      EXPECT_EQ(m.messages, slabs.count() == 2 ? 1u : 2u);
      EXPECT_EQ(m.bytes, 50 * m.sent);
    }
    EXPECT_EQ(sent, received);
    EXPECT_GT(sent, kParticles / 3);
  }
}

TEST(SiteMigration, WhereNothingMovesEmptyMessagesGo) {
  MovingSites sites(slabs_of({0, 0x40000000u, 0xa0000000u}));
  const auto home = [&](std::uint64_t id) { return sites.home(id); };
  sites.make(home);
  for (const Migration& m : sites.move()) {
    EXPECT_EQ(m.sent + m.received + m.bytes, 0u);
    EXPECT_EQ(m.messages, 2u);
  }
  sites.expect_order(home);
  for (MovingSites::Site& site : sites.all) {
    const Traffic traffic = site.sites->take_traffic()[static_cast<std::size_t>(Phase::kParticles)];
    EXPECT_EQ(traffic.messages_sent, 2u);
    EXPECT_EQ(traffic.messages_received, 2u);
  }
}

TEST(SiteMigration, SitesBecomeEmptyAndFillAgain) {
  MovingSites sites(slabs_of({0, 0x80000000u}));
  sites.make([](std::uint64_t) { return 0; });
  EXPECT_EQ(sites.all[1].particles.size(), 0u);
  sites.move();
  EXPECT_GT(sites.all[1].particles.size(), kParticles / 3);
  sites.slabs = slabs_of({0, 1});
  sites.move();
  EXPECT_EQ(sites.all[0].particles.size(), 0u);
  EXPECT_EQ(sites.all[1].particles.size(), kParticles);
  sites.slabs = slabs_of({0, 0xffffffffu});
  sites.move();
  EXPECT_EQ(sites.all[0].particles.size(), kParticles);
  EXPECT_EQ(sites.all[1].particles.size(), 0u);
  for (MovingSites::Site& site : sites.all) site.expect_fields_of_ids(sites.stream);
}

TEST(SiteMigration, OneSiteKeepsAll) {
  MovingSites sites(slabs_of({0}));
  sites.make([](std::uint64_t) { return 0; });
  EXPECT_EQ(sites.move()[0].messages, 0u);
  sites.expect_order([](std::uint64_t) { return 0; });
}

TEST(SiteMigration, AParticleThatHasPassedAWholeSlabIsAnError) {
  MovingSites sites(slabs_of({0, 0x40000000u, 0x80000000u, 0xc0000000u}));
  sites.make([](std::uint64_t) { return 0; });
  MovingSites::Site& site = sites.all[0];
  const std::string message =
      test::error_of([&] { site.migration->begin(sites.stream, sites.slabs, site.particles, site.arrays(), 1); });
  std::uint64_t first = 0, others = 0;
  for (std::uint64_t id = kParticles; id-- > 0;)
    if (sites.home(id) == 2) first = id, ++others;
  const double x = test::fields_of(first).source.x / 0x1p32;
  char sides[32];
  std::snprintf(sides, sizeof sides, "%.3g sides", std::min(x - 0.25, 1 - x));
  test::expect_contains(message, {"particle " + std::to_string(first) + " ", sides,
                                  std::to_string(others - 1) + " more", "site2"});
}

// Isolated sets: slabs may be so thin that particles pass them.
TEST(SiteMigration, BringsAllHomeFromAnywhere) {
  MovingSites sites(slabs_of({0, 0x40000000u, 0x80000000u, 0x81000000u, 0xc0000000u}), SiteMigration::Reach::kAll);
  const auto start = [&](std::uint64_t id) { return static_cast<int>(test::hash(id, 21) % 5); };
  sites.make(start);
  for (const Migration& m : sites.move()) EXPECT_EQ(m.messages, 4u);
  sites.expect_order(start);
}

TEST(SiteMigration, WrongArgumentsAreRefused) {
  MovingSites sites(slabs_of({0, 0x80000000u}));
  sites.make([&](std::uint64_t id) { return sites.home(id); });
  MovingSites::Site& site = sites.all[0];
  EXPECT_THROW(site.migration->begin(sites.stream, slabs_of({0}), site.particles, site.arrays(), 1),
               std::invalid_argument);
  site.extra[1].resize(1);
  EXPECT_THROW(site.migration->begin(sites.stream, sites.slabs, site.particles, site.arrays(), 1),
               std::invalid_argument);
}

}  // namespace
}  // namespace maki::sites
