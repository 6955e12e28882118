#include "src/run/estimate.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "src/config/parse.hpp"
#include "src/lightcone/sky_map.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using namespace test;

Config box() { return parse_config("[box]\nsize = \"500 Mpc/h\"\n[initial]\nparticles_per_side = 512\n", "box", {}); }
constexpr std::uint64_t kParticles = 512ull * 512 * 512;

// A rank of eight takes an eighth and more: shares are uneven, and it has its surroundings too.
TEST(Estimate, OfARankIsMoreThanItsShare) {
  const MemoryEstimate one = estimate_memory(box(), kParticles), many = estimate_memory(box(), kParticles, 8);
  EXPECT_EQ(one.let, 0);
  EXPECT_GT(many.let, 0);
  EXPECT_GT(many.device(), one.device() / 8);
  EXPECT_LT(many.device(), one.device() / 3);
  EXPECT_EQ(many.snapshot, one.snapshot);
  // The surroundings of a smaller domain are a larger part of what it has.
  EXPECT_GT(estimate_memory(box(), kParticles, 64).let * 64, many.let * 8);
}

// Shares of ranks become as uneven as memory allows; lists have the rest.
TEST(Estimate, SharesAreAsUnevenAsMemoryAllows) {
  MachineMemory memory{.device = "test", .host_is_device = false, .ranks = 8};
  const auto uneven_with = [&](double room) {
    memory.device_free = room * estimate_memory(box(), kParticles, 8).device();
    const double uneven = most_uneven(box(), kParticles, memory);
    const MemoryEstimate e = estimate_memory(box(), kParticles, 8, uneven);
    const double lists = static_cast<double>(list_budget(box(), kParticles, memory, uneven));
    EXPECT_LE(e.device() - e.lists + lists, memory.device_free);
    if (uneven > kUneven) {
      EXPECT_GT(lists, 2 * e.lists);
    }
    return uneven;
  };
  EXPECT_EQ(uneven_with(1.1), kUneven);
  EXPECT_GT(uneven_with(2), kUneven);
  EXPECT_LT(uneven_with(2), kMostUneven);
  EXPECT_EQ(uneven_with(8), kMostUneven);
  memory.ranks = 1;
  Config over = box();
  over.sites.ring = {"a", "b"};
  for (const Config& config : {box(), over}) EXPECT_EQ(most_uneven(config, kParticles, memory), kUneven);
}

// Each of four sites has a quarter of the particles, and a mesh of its own; it makes the whole set at the start.
TEST(Estimate, OfASiteIsOfItsShare) {
  Config over = box();
  over.sites.ring = {"a", "b", "c", "d"};
  const MemoryEstimate one = estimate_memory(box(), kParticles, 2), site = estimate_memory(over, kParticles, 2);
  EXPECT_EQ(site.particles, one.particles / 4);
  EXPECT_EQ(site.snapshot, one.snapshot / 4);
  EXPECT_EQ(site.host_start, one.host_start);
  EXPECT_GT(site.mesh, one.mesh / 2);
  EXPECT_GT(site.let, 0);
  EXPECT_LT(site.device(), one.device());
  EXPECT_EQ(describe(over, site, kParticles, nullptr)[1], "over 4 sites, at each of them:");
}

// Once, where lists are what never matters: bounded, or as small as the last that fits.
TEST(Estimate, SaysTheLargestRunOnce) {
  const MachineMemory memory{.device = "test", .device_free = 64e9};
  const auto last_line = [&](const Config& config) {
    return describe(config, estimate_memory(config, kParticles), kParticles, &memory).back();
  };
  Config small_groups = box();  // whose lists are long
  small_groups.gravity.group_size = 32;
  expect_contains(last_line(small_groups), {"particles, or "});
  Config bounded = box();
  bounded.gravity.list_memory = Quantity{1, "MB"};
  expect_lacks(last_line(bounded), {", or "});
  EXPECT_TRUE(last_line(bounded).ends_with("^3 particles")) << last_line(bounded);
}

// Ghosts around a domain, the thinner the larger the set; one rank alone has none.
TEST(Estimate, DeterministicRunsHaveGhosts) {
  Config same = box();
  same.run.deterministic = true;
  const MemoryEstimate one = estimate_memory(same, kParticles), many = estimate_memory(same, kParticles, 8);
  EXPECT_EQ(one.let, 40.0 * kParticles);
  EXPECT_GT(many.let * 8, 1.2 * one.let);
  EXPECT_GT(many.tree, 2 * estimate_memory(box(), kParticles, 8).tree);
  EXPECT_LT(estimate_memory(same, 64 * kParticles, 8).let, 64 * many.let);
  EXPECT_GT(one.device(), estimate_memory(box(), kParticles).device());
}

// A copy of 42 bytes a particle, and chunks on their way to HDF5; the disk takes what the options leave.
TEST(Estimate, SnapshotsCountAsTheyAreWritten) {
  const MemoryEstimate whole = estimate_memory(box(), kParticles);
  EXPECT_EQ(whole.host_snapshot, 42.0 * kParticles);
  EXPECT_EQ(whole.snapshot, 44.0 * kParticles);
  Config lean = box();
  lean.output.coordinates = CoordinateNumbers::kFixed32;
  lean.output.velocities = VelocityNumbers::kHalf;
  lean.output.fields = {"Coordinates", "Velocities", "ParticleIDs"};
  lean.output.subset = 0.5;
  const MemoryEstimate half = estimate_memory(lean, kParticles);
  EXPECT_EQ(half.snapshot, 0.5 * 22 * kParticles);
  EXPECT_EQ(half.host_snapshot, (42 + 0.5 * (13 + 8)) * kParticles);
}

// States of 54 bytes a particle (within a long step) are written beside the steps; sites keep two more, and more
// restarts; the disk is judged with all of them.
TEST(Estimate, RestartsAndKeptStatesCount) {
  Config over = box();
  over.sites.ring = {"a", "b"};
  const MemoryEstimate one = estimate_memory(box(), kParticles), site = estimate_memory(over, kParticles);
  EXPECT_EQ(one.host_states, 2 * 54.0 * kParticles);
  EXPECT_NEAR(site.host_states, 4 * site.particles * 54 / 42, 1e-9 * site.host_states);
  EXPECT_EQ(site.host(),
            std::max(site.host_start, site.host_mesh + site.host_states + site.host_snapshot + site.host_output));
  EXPECT_GT(site.shared(), site.device() + site.host_states + site.host_snapshot);
  EXPECT_EQ(one.restart, kParticles * 54.0);
  EXPECT_EQ(site.restart, one.restart / 2);
  EXPECT_EQ(one.restarts, 3);
  EXPECT_EQ(site.restarts, 5);
  Config none = box();
  none.run.restarts_kept = 0;
  EXPECT_EQ(estimate_memory(none, kParticles).restarts, 0);
  EXPECT_EQ(estimate_memory(none, kParticles).host_states, 0);

  Config config = box();
  config.output.redshifts = {2, 1};
  const double needed = 3 * one.snapshot + 3 * one.restart;
  EXPECT_EQ(disk_note(config, one, needed), "");
  const std::string note = disk_note(config, one, 0.9 * needed);
  expect_contains(note, {"3 snapshots", "3 restarts", "run.restarts_kept", "GB free"});
  EXPECT_GT(free_disk("no/such/directory"), 0);
  expect_contains(text_of(describe(over, site, kParticles, nullptr)),
                  {"host, states for restarts", "disk, 5 restarts"});
}

// In a universe of matter alone light comes from 2 c / H0 (1 - sqrt(a)); half of the sky is seen.
TEST(Estimate, CountsLightConesOnTheDisk) {
  Config config = box();
  config.cosmology.omega0 = 1, config.cosmology.omega_lambda = 0;
  EXPECT_EQ(estimate_memory(config, kParticles).light_cones, 0);
  config.lightcone.observers = {0, 0, 0, 250, 250, 250};
  config.lightcone.opening_angle = 90;
  config.lightcone.edges = {0, 0.1};
  const double reach = 2 * 2997.92458 * (1 - std::sqrt(1 / 1.1)), density = kParticles / 1.25e8;
  const double seen = 2 * 0.5 * 4 / 3 * 3.14159265358979 * std::pow(reach, 3);
  const MemoryEstimate two = estimate_memory(config, kParticles);
  EXPECT_NEAR(two.light_cones / (seen * density * 56), 1, 1e-5);
  EXPECT_NEAR(two.spools, two.light_cones, 1e-5 * two.spools) << "records have 56 bytes too";
  EXPECT_EQ(two.disk(0), 3 * two.restart + two.light_cones + two.spools);
  expect_contains(disk_note(config, two, 1e9), {"light cones", "lightcone.edges"});
  config.lightcone.write_particles = false;
  config.lightcone.nside = 16;
  EXPECT_EQ(estimate_memory(config, kParticles).light_cones, 2 * 12 * 256 * 8);
}

// Each site has maps of all the sky, with three earlier states of them in memory.
TEST(Estimate, CountsMapsOfEachSite) {
  Config config = box();
  config.lightcone.observers = {0, 0, 0};
  config.lightcone.edges = {0, 0.1};
  config.lightcone.write_particles = false;
  config.lightcone.nside = 1024;
  const double two_maps = 2 * 12 * 1024 * 1024 * 8;
  const MemoryEstimate one = estimate_memory(config, kParticles);
  config.sites.ring = {"west", "east"};
  const MemoryEstimate site = estimate_memory(config, kParticles);
  EXPECT_NEAR(site.host_cones - one.host_cones, 3 * two_maps, 1);
  EXPECT_EQ(site.light_cones, one.light_cones);
}

// The largest shell of one observer, of which each particle has a record, a row of a set and a scale factor.
TEST(Estimate, CountsAShellOnTheHost) {
  Config config = box();
  EXPECT_EQ(estimate_memory(config, kParticles).host_cones, 0);
  config.lightcone.observers = {0, 0, 0, 250, 250, 250};
  config.lightcone.edges = {0, 0.05, 0.1};
  const MemoryEstimate two = estimate_memory(config, kParticles);
  const double per_particle = (two.host_cones - 30e6) / (56 + 48 + 8);
  EXPECT_GT(per_particle, 0.8 * two.light_cones / 56 / 2) << "7/8 of an observer's particles, about";
  EXPECT_LT(per_particle, 0.9 * two.light_cones / 56 / 2);
  EXPECT_GE(two.host(), two.host_cones + two.host_states);
  config.lightcone.shells = 10;
  EXPECT_LT(estimate_memory(config, kParticles).host_cones, 0.5 * two.host_cones);
  config.run.restarts_kept = 0;
  EXPECT_LT(estimate_memory(config, kParticles).spools, 0.5 * two.spools) << "of one shell alone";
  expect_contains(text_of(describe(config, two, kParticles, nullptr)),
                  {"host, a shell of a light cone", "disk, their spools"});
  config.lightcone.edges = {};
  expect_error([&] { estimate_memory(config, kParticles); }, {"lightcone.edges has 0 edges"});
}

// Crossings come in batches of a quarter of the particles, on the device and on the host, wherever the shells are.
TEST(Estimate, CountsCrossingsOfAStep) {
  Config config = box();
  EXPECT_EQ(estimate_memory(config, kParticles).host_crossings, 0);
  config.lightcone.observers = {0, 0, 0};
  config.lightcone.edges = {0, 0.1};
  const MemoryEstimate cones = estimate_memory(config, kParticles);
  EXPECT_EQ(cones.host_crossings - 30e6, 0.25 * (56 + 72 + 2 * 56) * kParticles);
  EXPECT_GE(cones.host(), cones.host_states + cones.host_snapshot + cones.host_crossings);
  EXPECT_GE(cones.shared(), cones.device() + cones.host_states + cones.host_snapshot + cones.host_crossings);
  expect_contains(text_of(describe(config, cones, kParticles, nullptr)), {"host, what a light cone meets"});
  // Counts on their way to a map: at most two for a pixel, or those of a shell's particles; each twice, of 16 bytes.
  const auto for_maps = [&](std::int64_t nside) {
    config.lightcone.nside = nside;
    const MemoryEstimate e = estimate_memory(config, kParticles);
    return e.host_crossings - cones.host_crossings - 2 * 12.0 * static_cast<double>(nside * nside) * 8;
  };
  EXPECT_NEAR(for_maps(1), 2 * 16.0 * PixelCounts::kMany, 1);
  EXPECT_NEAR(for_maps(1024), 2 * 16 * 2 * 12.0 * 1024 * 1024, 1);
  EXPECT_NEAR(for_maps(8192), 2 * 16 * cones.light_cones / 56, 1e-4 * for_maps(8192));
}

// The first rank holds the rows of all groups, and their links; members are shared out.
TEST(Estimate, CountsRowsOfGroupsOfManyRanks) {
  Config config = box();
  config.output.groups = true;
  const MemoryEstimate many = estimate_memory(config, kParticles, 64);
  EXPECT_GT(many.host_first, 2.0 * kParticles);
  EXPECT_LT(many.host_first, 8.0 * kParticles);
  EXPECT_LT(many.host_output, 10.0 * kParticles);
  // Once on the first rank's machine, not for each rank.
  const double host_free = (many.host() + many.host_first / 64) / 0.94;
  MachineMemory memory{"test", false, 1e15, host_free, 64, 64};
  EXPECT_TRUE(judge_memory(many, memory).fits);
  memory.ranks_here = 8;
  EXPECT_FALSE(judge_memory(many, memory).fits);
  EXPECT_GE(estimate_memory(config, kParticles).host_output, 300.0 * kParticles) << "one rank finds the groups of all";
}

// Comparison of forces with a strict walk takes a copy of the particles and a second tree.
TEST(Estimate, CountsForceChecks) {
  Config config = box();
  config.output.power_spectrum = config.output.image = false;
  const MemoryEstimate none = estimate_memory(config, kParticles);
  config.output.error_targets = 100;
  const MemoryEstimate checked = estimate_memory(config, kParticles);
  EXPECT_GT(checked.scratch, none.scratch + none.tree);
  EXPECT_GT(checked.host_output, none.host_output + 100.0 * kParticles);
}

TEST(Estimate, VerdictsNameTheShareOfARank) {
  MachineMemory memory{.device = "test", .device_free = 4e9, .host_free = 4e9, .ranks = 8, .ranks_here = 8};
  const MemoryEstimate estimate = estimate_memory(box(), kParticles, 8);
  EXPECT_FALSE(judge_memory(estimate_memory(box(), kParticles), memory).fits);  // on one rank
  EXPECT_TRUE(judge_memory(estimate_memory(box(), kParticles, 64), memory).fits);
  memory.device_free = 1e9;
  expect_error([&] { require_memory(box(), estimate, kParticles, memory); },
               {"on 8 ranks: each", "its machine's share", "1.00 GB are free"});
  expect_contains(text_of(describe(box(), estimate, kParticles, &memory)),
                  {"on each of 8 ranks", "local essential trees", "a machine, all its ranks"});
}

}  // namespace
}  // namespace maki
