// What a run writes beside its snapshots, and what it writes over sites.
#include "src/run/products.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "src/config/parse.hpp"
#include "src/run/run_options.hpp"
#include "src/run/run_products.hpp"
#include "src/run/start_run.hpp"
#include "tests/kernels/particles/sets.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/on_device.hpp"
#include "tests/sites/replayed_sites.hpp"
#include "tests/src/io/io_helpers.hpp"
#include "tests/test_stream.hpp"
#include "wan/sites/gathered_set.hpp"

namespace maki {
namespace {

using namespace test;

constexpr const char* kBox = R"(
[run]
progress = "none"
[box]
size = "10 Mpc/h"
[initial]
particles_per_side = 8
[time]
end_redshift = 45
[output]
redshifts = [47, 45]
groups = true
image = false
power_spectrum = false
)";

// A folder has the name of the first catalogue.
struct WithoutPlace : RunProducts {
  using RunProducts::RunProducts;
  void message(const std::string& text) override { messages += text + "\n"; }
  void output(const OutputState& state) override {
    if (state.index == 0) std::filesystem::create_directories(path("groups_000.hdf5/full"));
    RunProducts::output(state);
  }
  std::string messages;
};

// Returns the messages.
std::string run_without_place(const std::string& folder, const std::vector<std::string>& settings) {
  Prepared run = prepare(parse_config(kBox, "test.toml", settings));
  run.config.run.output_directory = folder;
  WithoutPlace files(run_file_options(run, "box", {}), make_provenance(), run);
  const SimulationOptions options = simulation_options(run);
  Simulation simulation(test_stream(), std::move(run.initial), options, timeline_of(run), files);
  files.finish(simulation.run(), simulation.timers());
  return files.messages;
}

TEST(RunProducts, ARunGoesOnWithoutACatalogueThatCannotBeWritten) {
  const TempDir dir;
  expect_contains(run_without_place(dir / "run", {}), {"groups_000.hdf5", "The run goes on without it"});
  for (const char* name : {"snapshot_000.hdf5", "snapshot_001.hdf5", "groups_001.hdf5"})
    EXPECT_TRUE(std::filesystem::exists(dir / "run/" + name)) << name;
}

// Snapshots of members alone are nothing without the catalogue.
TEST(RunProducts, UnlessItsSnapshotsAreOfTheGroups) {
  const TempDir dir;
  expect_error([&] { run_without_place(dir / "run", {"output.groups_only=true"}); }, {"groups_000.hdf5"});
}

// A set that lies within 4 of the origin, in an internal box of this side, a power of two.
std::vector<float> picture_in_box(double side, const PictureOptions& options) {
  auto particles = testing::uniform_set(3000, 7, -4 / 64.0, 4 / 64.0);
  for (SourceParticle& p : particles)
    for (std::uint32_t* x : {&p.x, &p.y, &p.z})
      *x = static_cast<std::uint32_t>(static_cast<std::int32_t>(*x & ~15u) / static_cast<int>(side / 16) * 4) +
           (1u << 31);
  const OnDevice source(particles);
  SnapshotHeader header = make_snapshot(1).header;
  header.comoving = false;
  const Frame frame = make_frame(header, side, {0, 0, 0});
  sites::Sites alone(Communicator::self());
  return picture_of({test_stream(), source, frame, header, alone}, options);
}

TEST(PicturesOfIsolatedSets, KnowNoBox) {
  PictureOptions options;
  options.pixels = 32;
  const auto sees = [&](std::array<double, 3> centre) {
    options.centre = centre;
    const auto seen = picture_in_box(16, options);
    return std::ranges::any_of(seen, [](float x) { return x > 0; });
  };
  for (const double width : {4.0, 12.0, 100.0}) {
    options.width = width;
    options.depth = 0;
    options.centre = std::array<double, 3>{1, 0, 0};
    EXPECT_EQ(picture_in_box(16, options), picture_in_box(64, options)) << width;
    EXPECT_TRUE(sees({0, 0, 1000})) << "all of it along the line of sight";
    for (const double far : {16.0 * 64, -16.0 * 64, 1e30})  // multiples of the box
      EXPECT_FALSE(sees({far, 0, 0}) || sees({0, far, 0})) << far;
    options.depth = 40;
    EXPECT_TRUE(sees({0, 0, 20}));
    EXPECT_FALSE(sees({0, 0, 32}));
  }
  options.width = 1e9;
  expect_error([&] { sees({0, 0, 0}); }, {"1e+09", "16"});
}

// Power spectra and pictures of a run over sites are the same files at all sites, and those of a run at one site.
TEST(SitesProducts, AreTheFilesOfOneSiteByteByByte) {
  TempDir dir;
  auto set = testing::uniform_set(3000, 5);
  for (SourceParticle& p : set) p.mass = 1.5f;
  const SnapshotHeader header = make_snapshot(1).header;
  const Frame frame = make_frame(header, header.box_size, {25, 25, 25});
  const Stream& stream = test_stream();
  PictureOptions picture;
  picture.pixels = 64;
  const auto write = [&](const DeviceSet& whole, const std::string& name) {
    write_power_of(whole, {16}, dir / (name + ".txt"), make_provenance(), true);
    write_picture_of(whole, picture, dir / (name + ".png"), make_provenance(), true);
  };
  const OnDevice all(set);
  sites::Sites alone(Communicator::self());
  write({stream, all, frame, header, alone}, "one");
  for (const int count : {2, 3}) {
    replay_sites(count, [&](sites::Sites& sites) {
      std::vector<SourceParticle> own;
      for (const SourceParticle& p : set)
        if (static_cast<int>(std::uint64_t{p.x} * static_cast<std::uint64_t>(count) >> 32) == sites.me())
          own.push_back(p);
      const OnDevice mine(own);
      const sites::GatheredSet gathered(sites, stream, mine);
      const std::string name = "at_" + sites.name(sites.me());
      write({stream, gathered.share(), frame, header, sites, gathered.place()}, name);
    });
    for (const std::string& site : replayed_names(count)) {
      EXPECT_EQ(text_of(dir / ("at_" + site + ".txt")), text_of(dir / "one.txt")) << site;
      EXPECT_EQ(text_of(dir / ("at_" + site + ".png")), text_of(dir / "one.png")) << site;
    }
  }
  EXPECT_GT(text_of(dir / "one.png").size(), 1000u);
}

}  // namespace
}  // namespace maki
