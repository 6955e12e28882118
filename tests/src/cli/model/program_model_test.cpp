// maki model, called as a user calls it. What 'calibrate' measures is for no test to judge: constants have to be there,
// and of a possible size.
#include <fmt/format.h>

#include <cmath>

#include "src/config/parse.hpp"
#include "src/run/estimate.hpp"
#include "tests/src/cli/program_fixture.hpp"

namespace maki {
namespace {

using namespace test;

class ProgramModel : public Program {
 protected:
  static std::string machine(const std::string& name) {
    return " --machine " + source_directory() + "/configs/machines/" + name + ".toml ";
  }
};

TEST_F(ProgramModel, PrintsTablesCsvAndPlots) {
  const std::string problem = "--particles 512 --mesh 256 --theta 0.3 --processes 120 --over 5 --moved 73400320";
  expect_end(call("model table" + machine("das3") + problem), 0,
             {"comm local", "54.19", "35.68", "94.7", "forces", "eqs. 2-12"});
  expect_end(call("model efficiency" + machine("das3") + problem + " --csv --svg " + path("e.svg")), 0,
             {"sites,processes,E,seconds a step,most\n1,120,1.000,"});
  EXPECT_TRUE(fs::exists(path("e.svg")));
  expect_words(call("model speedup" + machine("global_grid") + "--particles 2048 --mesh 256 --processes 128 --over 16"),
               {"13.5"});
  expect_words(call("model bandwidth" + machine("global_grid") +
                    "--particles 2048 --mesh 256 --processes 2048 --over 8"),
               {"E(8) = 0.8 takes"});
  expect_words(call("model table --model fdps" + machine("titan_v") + "--particles 161.27 --group 230"),
               {"new lists", "0.42", "0.091"});
}

TEST_F(ProgramModel, TakesAConfigurationAndAnotherMachinesSites) {
  expect_end(call("model predict " + tiny() + " --model sushi" + machine("laptop") + "--sites " + source_directory() +
                  "/configs/machines/global_grid.toml --over 2 --processes 8"),
             0, {"N = 16^3", "laptop, 8 cores, global grid", "latency between sites"});
}

TEST_F(ProgramModel, SaysWhatIsMissing) {
  expect_words(call("model table" + machine("das3") + "--particles 64 --mesh 64 --over 3"), {"too few for 3 sites"});
  EXPECT_EQ(call("model").code, 2);
  EXPECT_EQ(call("model predict").code, 2);
  expect_words(call("model predict" + machine("laptop")), {"no problem to model"});
  for (const std::string wrong : {"--particles inf", "--particles 64 --mesh 1e30", "--particles 64 --mesh 1e-9",
                                  "--theta nan", "--moved -1", "--sampled 2", "--cut inf", "--long-every nan"})
    EXPECT_EQ(call("model predict" + machine("h100_node") + wrong).code, 2) << wrong;
  expect_words(call("model predict" + machine("global_grid") + "--particles 64"),
               {"a TreePM run has a mesh", "--mesh"});
  expect_words(call("model predict --model fdps" + machine("das3") + "--particles 64"), {"nothing of an accelerator"});
  expect_words(call("model table --model sushi" + machine("titan_v") + "--particles 64 --mesh 64"), {"lists no sites"});
  expect_words(call("model table" + machine("das3") + "--particles 64 --mesh 64 --processes 9 --over 9"),
               {"lists 5 sites, not 6"});
}

TEST_F(ProgramModel, MemoryIsThatOfTheEstimateOfARun) {
  const std::string config = tiny();
  const MemoryEstimate own = estimate_memory(load_config(config, {}), 16 * 16 * 16);
  expect_words(call("model predict " + config + machine("h100_node")),
               {fmt::format("Memory of a rank: {:.4g} GB of a GPU and {:.4g} GB of its host, or {:.4g} GB without",
                            1e-9 * own.device(), 1e-9 * own.host(), 1e-9 * own.shared())});
  // Of a box that no configuration describes: all defaults, two sites of eight ranks.
  Config box = parse_config("", "box", {"run.kind=cosmology", "box.size=1 Mpc/h", "gravity.mesh=384"});
  box.sites.ring.resize(2);
  const MemoryEstimate share = estimate_memory(box, 256 * 256 * 256, 8);
  const std::string sides = " --particles 256 --mesh 384 --over 2 --processes 16";
  expect_words(call("model predict" + sides + machine("h100_node")),
               {fmt::format("Memory of a rank: {:.4g} GB of a GPU", 1e-9 * share.device())});
}

// All that ends a run's log is there, with modelled times or with how to come by them.
TEST_F(ProgramModel, ARunsLogEndsWithModelledTimes) {
  const std::string machine = write("desk.toml",
                                    "name = \"desk\"\nsource = \"thought of\"\n[maki]\npair = 1e-9\n"
                                    "interactions = 500\nmade = 1e-7\nnear = 1e6\ndoubling = 1e-8\nkept = 1e-8\n");
  const std::string run = "run " + tiny() + " output.image=false gravity.reuse=2 output_directory=";
  const auto log_of = [&](const std::string& name) { return CallResult{0, text_of(path(name + "/log.txt"))}; };
  ASSERT_EQ(call(run + path("with") + " run.machine=" + machine).code, 0);
  expect_words(log_of("with"), {"beside Maki's own model of 'desk'", "forces by lists", "new trees and lists",
                                "Furthest off: ", "; the model has ", " of 1e-09 s.", "Left out: the first forces"});
  ASSERT_EQ(call(run + path("without")).code, 0);
  expect_words(log_of("without"), {"maki model calibrate", "run.machine"});
  expect_lacks(log_of("without").output, {"Furthest off"});

  expect_words(call(run + path("estimate") + " --estimate run.machine=" + machine),
               {"a step: ", "s with new lists", "(maki model, 'desk')"});
  expect_lacks(call(run + path("estimate") + " --estimate").output, {"a step: "});

  expect_end(call(run + path("none") + " run.machine=" + path("none.toml")), 1,
             {"none.toml", "give the path of a machine"});
  expect_end(call(run + path("none") + " run.machine=" + source_directory() + "/configs/machines/das3.toml"), 1,
             {"has no constants of Maki", "maki model calibrate"});
  EXPECT_FALSE(fs::exists(path("none")));
}

using ProgramCalibrate = Program;

// Seconds that no processor is too fast for, and no test's patience too short.
void expect_possible(double seconds, double least, double most, const char* what) {
  EXPECT_TRUE(std::isfinite(seconds)) << what;
  EXPECT_GE(seconds, least) << what;
  EXPECT_LE(seconds, most) << what;
}

TEST_F(ProgramCalibrate, StoresWhatOtherCommandsRead) {
  const std::string file = path("desk.toml");
  const auto result = expect_end(call("model calibrate --particles 64 -o " + file), 0,
                                 {"16^3 particles, mesh ", "32^3 particles, mesh 32^3: forces", "64^3 particles, mesh ",
                                  "[maki]", "pair = "});
  EXPECT_NE(result.output.find(text_of(file)), std::string::npos) << "the file has what was printed";

  const model::Machine machine = read_machine(file);
  EXPECT_EQ(machine.source.find("measured: "), 0u) << machine.source;
  ASSERT_TRUE(machine.maki);
  const model::MakiConstants& c = *machine.maki;
  EXPECT_NEAR(c.interactions, 450, 150);  // of the standard preset at z = 49 (bench/NOTES.md, "Maki's own model")
  EXPECT_NEAR(c.reach, 2, 0.2);           // 3 cells of some 1.5 a mean distance
  EXPECT_NEAR(c.near, 32 * 32 * 32, 50);  // of four digits
  expect_possible(c.pair, 1e-14, 1e-5, "pair");
  expect_possible(c.made + c.fixed_made, 1e-12, 10, "made");
  expect_possible(c.kept + c.fixed_kept, 1e-12, 10, "kept");
  expect_possible(c.mesh_particle + c.mesh_cell, 1e-14, 1e-2, "mesh");
  for (const double each : {c.made, c.fixed_made, c.doubling, c.kept, c.fixed_kept, c.mesh_particle, c.mesh_cell})
    expect_possible(each, 0, 10, "one of them");

  expect_end(call("model predict --machine " + file + " --particles 64"), 0,
             {"Maki, this machine: N = 64^3, M = ", "forces by lists", "measured: "});
}

// Before a minute of measurements, not after.
TEST_F(ProgramCalibrate, RefusesAFileThatItCannotWrite) {
  const std::string file = write("desk.toml", "of somebody else");
  const auto refused = [&](const std::string& where, const std::vector<std::string>& words) {
    const auto result = expect_end(call("model calibrate --particles 64 " + where), 1, words);
    EXPECT_EQ(result.output.find("forces "), std::string::npos) << "measured all the same:\n" << result.output;
  };
  refused("-o " + file, {"desk.toml' exists already", "--overwrite"});
  EXPECT_EQ(text_of(file), "of somebody else");
  refused("-o " + path("none/desk.toml"), {"cannot write", "none"});
  refused("--overwrite -o " + directory_.string(), {"it is a directory"});
  for (const std::string size : {"63", "513", "many"})
    EXPECT_EQ(call("model calibrate --particles " + size).code, 2) << size;
}

TEST_F(ProgramCalibrate, IsForOneProcess) {
  const CallResult several = call("model calibrate --particles 64 -o " + path("desk.toml"), launcher(2));
  EXPECT_NE(several.code, 0);
  expect_words(several, {"measured by one process, and these are 2", "OMP_NUM_THREADS"});
  EXPECT_FALSE(fs::exists(path("desk.toml")));
  EXPECT_EQ(several.output.find("forces "), std::string::npos) << "measured all the same:\n" << several.output;
}

}  // namespace
}  // namespace maki
