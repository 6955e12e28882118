// What a run writes beside its snapshots.
#include "src/run/run_products.hpp"
#include "src/run/run_options.hpp"

#include "src/config/parse.hpp"
#include "src/run/start_run.hpp"
#include "tests/src/io/io_helpers.hpp"
#include "tests/test_stream.hpp"

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

}  // namespace
}  // namespace maki
