// maki model calibrate, called as a user calls it. What it measures is for no test to judge: constants have to be there, and
// of a possible size.
#include <cmath>
#include <sstream>

#include "src/config/machine_file.hpp"
#include "tests/src/cli/program_fixture.hpp"

namespace maki {
namespace {

using test::call, test::expect_words;

class ProgramCalibrate : public test::Program {
 protected:
  static std::string text_of(const std::string& file) {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
};

// Seconds that no processor is too fast for, and no test's patience too short.
void expect_possible(double seconds, double least, double most, const char* what) {
  EXPECT_TRUE(std::isfinite(seconds)) << what;
  EXPECT_GE(seconds, least) << what;
  EXPECT_LE(seconds, most) << what;
}

TEST_F(ProgramCalibrate, StoresWhatOtherCommandsRead) {
  const std::string file = path("desk.toml");
  const auto result = call("model calibrate --particles 64 -o " + file);
  ASSERT_EQ(result.code, 0) << result.output;
  expect_words(result, {"16^3 particles, mesh ", "32^3 particles, mesh 32^3: forces", "64^3 particles, mesh ", "[maki]",
                        "pair = "});
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

  const auto step = call("model predict --machine " + file + " --particles 64");
  EXPECT_EQ(step.code, 0) << step.output;
  expect_words(step, {"Maki, this machine: N = 64^3, M = ", "forces by lists", "measured: "});
}

// Before a minute of measurements, not after.
TEST_F(ProgramCalibrate, RefusesAFileThatItCannotWrite) {
  const std::string file = write("desk.toml", "of somebody else");
  const auto there = call("model calibrate --particles 64 -o " + file);
  EXPECT_EQ(there.code, 1) << there.output;
  expect_words(there, {"desk.toml' exists already", "--overwrite"});
  EXPECT_EQ(text_of(file), "of somebody else");
  const auto nowhere = call("model calibrate --particles 64 -o " + path("none/desk.toml"));
  EXPECT_EQ(nowhere.code, 1) << nowhere.output;
  expect_words(nowhere, {"cannot write", "none"});
  const auto folder = call("model calibrate --particles 64 --overwrite -o " + directory_.string());
  EXPECT_EQ(folder.code, 1) << folder.output;
  expect_words(folder, {"it is a directory"});
  for (const auto& refused : {there, nowhere, folder})
    EXPECT_EQ(refused.output.find("forces "), std::string::npos) << "measured all the same:\n" << refused.output;
  for (const std::string size : {"63", "513", "many"})
    EXPECT_EQ(call("model calibrate --particles " + size).code, 2) << size;
}

}  // namespace
}  // namespace maki
