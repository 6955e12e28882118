// maki model, called as a user calls it.
#include <fmt/format.h>

#include <sstream>

#include "src/config/parse.hpp"
#include "src/run/estimate.hpp"
#include "tests/src/cli/program_fixture.hpp"

namespace maki {
namespace {

using test::call, test::expect_words;

class ProgramModel : public test::Program {
 protected:
  static std::string machine(const std::string& name) {
    return " --machine " + test::source_directory() + "/configs/machines/" + name + ".toml ";
  }
};

TEST_F(ProgramModel, PrintsTablesCsvAndPlots) {
  const std::string problem = "--particles 512 --mesh 256 --theta 0.3 --processes 120 --over 5 --moved 73400320";
  const auto text = call("model table" + machine("das3") + problem);
  EXPECT_EQ(text.code, 0);
  expect_words(text, {"comm local", "54.19", "35.68", "94.7", "forces", "eqs. 2-12"});
  const auto csv = call("model efficiency" + machine("das3") + problem + " --csv --svg " + path("e.svg"));
  EXPECT_EQ(csv.code, 0);
  expect_words(csv, {"sites,processes,E,seconds a step,most\n1,120,1.000,"});
  EXPECT_TRUE(test::fs::exists(path("e.svg")));
  expect_words(call("model speedup" + machine("global_grid") + "--particles 2048 --mesh 256 --processes 128 --over 16"),
               {"13.5"});
  expect_words(call("model bandwidth" + machine("global_grid") +
                    "--particles 2048 --mesh 256 --processes 2048 --over 8"),
               {"E(8) = 0.8 takes"});
  expect_words(call("model table --model fdps" + machine("titan_v") + "--particles 161.27 --group 230"),
               {"new lists", "0.42", "0.091"});
}

TEST_F(ProgramModel, TakesAConfigurationAndAnotherMachinesSites) {
  const std::string config = write("tiny.toml", test::kTinyUniverse);
  const auto result = call("model predict " + config + " --model sushi" + machine("laptop") + "--sites " +
                           test::source_directory() + "/configs/machines/global_grid.toml --over 2 --processes 8");
  EXPECT_EQ(result.code, 0) << result.output;
  expect_words(result, {"N = 16^3", "laptop, 8 cores, global grid", "latency between sites"});
}

TEST_F(ProgramModel, SaysWhatIsMissing) {
  expect_words(call("model table" + machine("das3") + "--particles 64 --mesh 64 --over 3"), {"too few for 3 sites"});
  EXPECT_EQ(call("model").code, 2);
  EXPECT_EQ(call("model predict").code, 2);
  expect_words(call("model predict" + machine("laptop")), {"no problem to model"});
  expect_words(call("model predict" + machine("global_grid") + "--particles 64"),
               {"a TreePM run has a mesh", "--mesh"});
  expect_words(call("model predict --model fdps" + machine("das3") + "--particles 64"), {"nothing of an accelerator"});
  expect_words(call("model table --model sushi" + machine("titan_v") + "--particles 64 --mesh 64"), {"lists no sites"});
  expect_words(call("model table" + machine("das3") + "--particles 64 --mesh 64 --processes 9 --over 9"),
               {"lists 5 sites, not 6"});
}

TEST_F(ProgramModel, MemoryIsThatOfTheEstimateOfARun) {
  const std::string config = write("tiny.toml", test::kTinyUniverse);
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
  const std::string run =
      "run " + write("tiny.toml", test::kTinyUniverse) + " output.image=false gravity.reuse=2 output_directory=";
  const auto log_of = [&](const std::string& name) {
    std::stringstream text;
    text << std::ifstream(path(name + "/log.txt")).rdbuf();
    return test::Result{0, text.str()};
  };
  ASSERT_EQ(call(run + path("with") + " run.machine=" + machine).code, 0);
  expect_words(log_of("with"), {"beside Maki's own model of 'desk'", "forces by lists", "new trees and lists",
                                "Furthest off: ", "; the model has ", " of 1e-09 s.", "Left out: the first forces"});
  ASSERT_EQ(call(run + path("without")).code, 0);
  expect_words(log_of("without"), {"maki model calibrate", "run.machine"});
  EXPECT_EQ(log_of("without").output.find("Furthest off"), std::string::npos);

  expect_words(call(run + path("estimate") + " --estimate run.machine=" + machine),
               {"a step: ", "s with new lists", "(maki model, 'desk')"});
  EXPECT_EQ(call(run + path("estimate") + " --estimate").output.find("a step: "), std::string::npos);

  const auto none = call(run + path("none") + " run.machine=" + path("none.toml"));
  EXPECT_EQ(none.code, 1);
  expect_words(none, {"none.toml", "give the path of a machine"});
  const auto other =
      call(run + path("none") + " run.machine=" + test::source_directory() + "/configs/machines/das3.toml");
  EXPECT_EQ(other.code, 1);
  expect_words(other, {"has no constants of Maki", "maki model calibrate"});
  EXPECT_FALSE(test::fs::exists(path("none")));
}

}  // namespace
}  // namespace maki
