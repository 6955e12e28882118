// Each site's part of the initial conditions.
#include "src/run/over_sites.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/device/stream.hpp"
#include "kernels/error.hpp"
#include "src/config/parse.hpp"
#include "src/run/run_options.hpp"
#include "src/simulation/frame.hpp"
#include "tests/messages.hpp"
#include "tests/sites/replayed_sites.hpp"
#include "tests/test_stream.hpp"

namespace maki {

namespace {

using namespace test;

Prepared make_run(const std::vector<std::string>& settings = {}) {
  return prepare(parse_config("[box]\nsize = \"50 Mpc/h\"\n[initial]\nparticles_per_side = 16\n[gravity]\nr_cut = 2\n",
                              "t", settings));
}

// What each of the sites keeps of `runs`, one for each.
std::vector<Prepared> shares(const std::vector<Prepared>& runs) {
  std::vector<Prepared> kept(runs.size());
  replay_sites(static_cast<int>(runs.size()), [&](sites::Sites& sites) {
    const auto me = static_cast<std::size_t>(sites.me());
    kept[me] = runs[me];
    keep_own_slab(kept[me], sites, Communicator::self());
  });
  return kept;
}

std::string refusal(const std::vector<Prepared>& runs) {
  return error_of([&] { shares(runs); });
}

// The coordinates are those on the device: a particle is in one slab only, and none is in no slab.
TEST(SiteShare, SlabsMakeUpTheWhole) {
  for (const int count : {2, 3}) {
    const Prepared whole = make_run();
    const auto kept = shares(std::vector<Prepared>(static_cast<std::size_t>(count), whole));
    const sites::Slabs slabs = first_slabs(whole, count);
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < count; ++i) {
      const Prepared& run = kept[static_cast<std::size_t>(i)];
      EXPECT_EQ(run.particles, 4096u);
      EXPECT_GT(run.initial.size(), 1000u);
      EXPECT_EQ(run.initial.positions.capacity(), run.initial.size());
      const Stream& stream = test_stream();
      Particles particles;
      load_particles(stream, run.initial, make_frame(run.initial.header, run.side, run.centre), particles);
      for (const SourceParticle& p : particles.source.download(stream)) EXPECT_EQ(slabs.site_of(p.x), i);
      ids.insert(ids.end(), run.initial.ids.begin(), run.initial.ids.end());
      for (std::size_t p = 0; p < run.initial.size(); p += 100) {
        const auto& all = whole.initial.ids;
        const auto at = std::find(all.begin(), all.end(), run.initial.ids[p]) - all.begin();
        EXPECT_EQ(run.initial.positions[p], whole.initial.positions[static_cast<std::size_t>(at)]);
        EXPECT_EQ(run.initial.velocities[p], whole.initial.velocities[static_cast<std::size_t>(at)]);
        EXPECT_EQ(run.initial.masses[p], whole.initial.masses[static_cast<std::size_t>(at)]);
      }
    }
    std::vector<std::uint64_t> all = whole.initial.ids;
    std::sort(ids.begin(), ids.end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(ids, all);
  }
}

// Of an isolated set, which is dense in the middle: as many particles for each site.
TEST(SiteShare, SlabsOfAnIsolatedSetAreEqualInNumber) {
  const Prepared whole = prepare(parse_config("[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\n", "t",
                                              {"particles=3000", "gravity.softening=0.05", "end_time=1"}));
  for (const int count : {2, 4}) {
    const auto kept = shares(std::vector<Prepared>(static_cast<std::size_t>(count), whole));
    std::size_t all = 0;
    for (int i = 0; i < count; ++i) {
      const Prepared& run = kept[static_cast<std::size_t>(i)];
      all += run.initial.size();
      EXPECT_NEAR(static_cast<double>(run.initial.size()), 3000.0 / count, 60);
      EXPECT_EQ(run.slabs, kept[0].slabs);
      const Frame frame = make_frame(run.initial.header, run.side, run.centre);
      const sites::Slabs slabs(simulation_options(run).gravity.slabs);
      for (const auto& position : run.initial.positions) {
        const double x = (position[0] - frame.corner[0]) / frame.side;
        EXPECT_EQ(slabs.site_of(static_cast<std::uint32_t>(x * kSideToUnits)), i);
      }
    }
    EXPECT_EQ(all, 3000u);
  }
}

TEST(SiteShare, DifferentSetsAreRefused) {
  const Prepared one = make_run();
  expect_contains(refusal({one, make_run({"particles_per_side=20"})}), {"north and east", "4096 and 8000 particles"});
  expect_contains(refusal({one, make_run({"initial.seed=2"})}), {"different initial conditions"});
  Prepared other = one;
  other.initial.ids.front() += 100000;
  expect_contains(refusal({one, other}), {"different ids"});
}

TEST(SiteShare, ThinSlabsAreRefusedWithTheNumbers) {
  const Prepared run = make_run();
  EXPECT_NO_THROW(first_slabs(run, 2));
  EXPECT_THROW(first_slabs(run, 64), Error);
  Prepared same = run;
  same.config.run.deterministic = true;
  EXPECT_NO_THROW(first_slabs(same, 2));
  expect_error([&] { first_slabs(same, 3); }, {"run.deterministic = false"});
}

TEST(ChooseSite, NamesAndDirectories) {
  const auto choose = [](const std::vector<std::string>& settings, const std::string& name) {
    Config config =
        parse_config("[sites.a]\naddress = 'h:1'\n[sites.b]\naddress = 'h:2'\n[sites]\nring = ['a', 'b']\nkey = 'k'\n",
                     "t", settings);
    const ThisSite site = choose_site(config, name);
    return fmt::format("{} {}/{} {}", site.name, site.place, site.count, config.run.output_directory.value_or("-"));
  };
  EXPECT_EQ(choose({}, "b"), "b 1/2 output/run/b");
  EXPECT_EQ(choose({"output_directory=x"}, "a"), "a 0/2 x");
  for (const char* name : {"", "c"}) expect_error([&] { choose({}, name); }, {"a, b", "--site"});
  EXPECT_NO_THROW(choose({"run.kind=isolated", "initial.kind=plummer"}, "a"));
  EXPECT_THROW(choose({"run.kind=isolated", "initial.kind=plummer", "gravity.method=direct"}, "a"), Error);
  Config alone;
  EXPECT_FALSE(choose_site(alone, "").over_sites());
  EXPECT_FALSE(alone.run.output_directory.has_value());
  EXPECT_THROW(choose_site(alone, "a"), Error);
}

TEST(AtAllSites, WhatGoesWrongAtOneIsToldToAll) {
  const auto said = errors_at_sites(3, [](sites::Sites& sites) {
    at_all_sites(sites, [&] {
      if (sites.me() == 1) throw Error("the disk is full");
    });
  });
  EXPECT_EQ(said[1], "the disk is full");
  for (const std::size_t other : {0, 2}) expect_contains(said[other], {"site east", "the disk is full"});
  int calls = 0;
  sites::Sites alone(Communicator::self());
  at_all_sites(alone, [&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

// It goes to the terminals of the others.
TEST(AtAllSites, TheTextOfASiteHasNoControlCharactersOrLinesOfItsOwn) {
  const auto said = errors_at_sites(2, [](sites::Sites& sites) {
    at_all_sites(sites, [&] {
      if (sites.me() == 1) throw Error("\x1b[2Jfull\nmaki: error: all is lost");
    });
  });
  expect_contains(said[0], {"site east cannot go on (\\x1b[2Jfull\\x0amaki: error: all is lost)"});
  replay_sites(2, [](sites::Sites& sites) {
    const auto texts = gather_texts(sites, sites.me() == 1 ? "a\r" + std::string(1'000'000, 'b') : "Zürich");
    EXPECT_EQ(texts[0], "Zürich");
    EXPECT_EQ(texts[1].substr(0, 6), "a\\x0db");
    EXPECT_LT(texts[1].size(), 5000u);
  });
}

}  // namespace

}  // namespace maki
