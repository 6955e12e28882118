// Configurations as users get them right and wrong.
#include "src/config/parse.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "kernels/error.hpp"
#include "src/config/keys.hpp"
#include "src/config/quantity.hpp"
#include "tests/messages.hpp"
#include "tests/places.hpp"
#include "tests/temp_dir.hpp"

namespace maki {
namespace {

using namespace test;

// The message with which a configuration is refused, or "".
std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return error_of([&] { parse_config(text, "run.toml", overrides); });
}

TEST(ParseConfig, ReadsEveryTypeOfValue) {
  const Config config = parse_config(R"(
    [run]
    kind = "cosmology"
    overwrite = true
    name = "a \"b\""
    time_limit = "0.5 h"
    [box]
    size = "50 Mpc/h"
    [initial]
    particles_per_side = 32
    redshift = 20
    [gravity]
    softening = 20
    assignment = "tsc"
    theta = "auto"
    r_cut = 4
    [output]
    redshifts = [3, 1.5, 0]
  )",
                                     "run.toml");
  EXPECT_TRUE(config.run.overwrite);
  EXPECT_EQ(config.run.name, "a \"b\"");
  EXPECT_EQ(config.run.time_limit, (Quantity{0.5, "h"}));
  EXPECT_EQ(config.box.size, (Quantity{50, "Mpc/h"}));
  EXPECT_EQ(config.initial.particles_per_side, 32);
  EXPECT_EQ(config.initial.redshift, 20);
  EXPECT_EQ(config.gravity.softening, (Quantity{20, ""}));
  EXPECT_EQ(config.gravity.assignment, Assignment::kTsc);
  EXPECT_FALSE(config.gravity.theta.has_value());
  EXPECT_EQ(config.gravity.r_cut, 4.0);
  EXPECT_EQ(config.output.redshifts, (std::vector<double>{3, 1.5, 0}));
}

TEST(ParseConfig, UnknownKeysNameFileLineAndNearest) {
  expect_contains(refusal("[run]\n\n[gravity]\nsofening = 3\n"),
                  {"run.toml line 4", "'gravity.sofening'", "'gravity.softening'"});
  expect_contains(refusal("[cosmology]\nHubbleParam = 0.7\n"), {"line 2", "'cosmology.hubble_param'"});
  expect_contains(refusal("[cosmology]\nOmegaLambda = 0.7\n"), {"'cosmology.omega_lambda'"});
  expect_contains(refusal("[run]\ntheta = 0.5\n"), {"'gravity.theta'"});     // right name, wrong section
  expect_contains(refusal("[gravty]\ntheta = 0.5\n"), {"'gravity.theta'"});  // wrong section
  expect_contains(refusal("softening = 0.5\n"), {"line 1", "'gravity.softening'"});
}

TEST(ParseConfig, ParametersOfGadgetAndSwiftLeadToTheirKeys) {
  expect_contains(refusal("[gravity]\nPMGRID = 64\n"), {"'gravity.mesh'"});
  expect_contains(refusal("", {"TimeBetSnapshot=1.1"}), {"'output.redshifts'"});
  expect_contains(refusal("", {"mesh_side_length=64"}), {"'gravity.mesh'"});
  expect_contains(refusal("[gravity]\nmax_physical_DM_softening = 1\n"), {"'gravity.max_physical_softening'"});
  expect_contains(refusal("SofteningComovingClass0 = 1\n"), {"'gravity.softening'"});
  expect_contains(refusal("", {"TimeMax=1"}), {"'time.end_redshift'"});
  const std::string near_to_none = refusal("", {"G=1"});
  expect_contains(near_to_none, {"no key 'G'", "maki config"});
  expect_lacks(near_to_none, {"did you mean"});
  expect_contains(refusal("", {"mnu=0.06"}), {"no key 'mnu'", "(w0, wa)", "cosmology.omega_radiation"});
}

TEST(ParseConfig, WrongTypesSayWhatWasExpected) {
  expect_contains(refusal("[gravity]\ntheta = \"wide\"\n"),
                  {"run.toml line 2", "gravity.theta", "\"wide\"", "a number", "0.05 to 1.5"});
  expect_contains(refusal("[gravity]\nmesh = 64.5\n"), {"gravity.mesh", "64.5", "an integer"});
  expect_contains(refusal("[run]\noverwrite = 1\n"), {"run.overwrite", "true or false"});
  expect_contains(refusal("[run]\nname = 3\n"), {"run.name", "text in quotes"});
  expect_contains(refusal("[run]\nkind = \"cosmolgy\"\n"), {"run.kind", "\"cosmolgy\"", "\"cosmology\", \"isolated\""});
  expect_contains(refusal("[output]\nredshifts = 3\n"), {"output.redshifts", "a list of numbers"});
  expect_contains(refusal("[output]\nredshifts = [3, \"x\"]\n"), {"output.redshifts", "numbers"});
  expect_contains(refusal("[run]\nname = 1979-05-27\n"), {"run.name"});
  expect_contains(refusal("[run.name]\nx = 1\n"), {"run.name"});
}

TEST(ParseConfig, RangesAreChecked) {
  expect_contains(refusal("[gravity]\ntheta = 7\n"), {"run.toml line 2", "gravity.theta", "7", "0.05 to 1.5"});
  expect_contains(refusal("[gravity]\ntheta = nan\n"), {"gravity.theta", "nan"});
  expect_contains(refusal("[box]\nsize = \"-5 Mpc/h\"\n"), {"box.size", "above 0"});
  expect_contains(refusal("[box]\nsize = inf\n"), {"box.size"});
  expect_contains(refusal("[initial]\nredshift = 0\n"), {"initial.redshift", "above 0, at most 1000"});
  expect_contains(refusal("[output]\nredshifts = [1, -3]\n"), {"output.redshifts", "-3"});
  expect_contains(refusal("[output]\ncompression = 10\n"), {"output.compression", "0 to 9"});
}

TEST(ParseConfig, UnitsAreChecked) {
  expect_contains(refusal("[box]\nsize = \"50 Mcp/h\"\n"), {"line 2", "box.size", "'Mcp/h'", "Mpc/h"});
  expect_contains(refusal("[box]\nsize = \"50 s\"\n"), {"box.size", "length"});
  expect_contains(refusal("[box]\nsize = \"large\"\n"), {"box.size", "'large'", "number"});
}

TEST(ParseConfig, NoTomlIsAnErrorWithItsLine) {
  expect_contains(refusal("[run]\nname = \n"), {"run.toml line 2", "TOML"});
  expect_contains(refusal("[run]\nname = \"a\"\nname = \"b\"\n"), {"run.toml line 3", "TOML"});
}

TEST(ParseConfig, KeysWithoutMeaningForTheRunAreRefused) {
  expect_contains(refusal("[run]\nkind = \"isolated\"\n[cosmology]\nomega0 = 0.3\n"),
                  {"line 4", "cosmology.omega0", "isolated"});
  expect_contains(refusal("[initial]\neccentricity = 0.3\n"), {"line 2", "initial.eccentricity", "lpt"});
  expect_contains(refusal("", {"time.end_time=3"}), {"command line", "time.end_time"});
}

TEST(ParseConfig, OutputTimesMayHaveUnits) {
  const std::string isolated = "[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\n[output]\n";
  const std::vector<Quantity> times = {{0.5, ""}, {1, "Gyr"}};
  EXPECT_EQ(parse_config(isolated + "times = [0.5, \"1 Gyr\"]\n", "run.toml").output.times, times);
  for (const char* setting : {"output.times=[0.5, \"1 Gyr\"]", "output.times=0.5, 1 Gyr"})
    EXPECT_EQ(parse_config(isolated, "run.toml", {setting}).output.times, times) << setting;
  expect_contains(refusal(isolated + "times = [\"1 kpc\"]\n"), {"run.toml line 6", "output.times", "'kpc'", "Gyr"});
  expect_contains(refusal(isolated + "times = [-1]\n"), {"output.times", "-1"});
}

// As GADGET's OutputListFilename; afterwards the configuration holds the numbers, as in restarts.
TEST(ParseConfig, OutputsComeFromAFile) {
  const TempDir folder;
  const std::string path = folder / "outputs.txt";
  const auto with_list = [&](const std::string& lines, const std::string& text, std::vector<std::string> more = {}) {
    std::ofstream(path) << lines;
    more.push_back("output.list=" + path);
    return parse_config(text, "run.toml", more);
  };
  const Config config = with_list("# a, flag\n0.02 1\n0.1\n\n 0.2 0\n1 # today\n", "");
  EXPECT_EQ(config.output.redshifts, (std::vector<double>{49, 9, 0}));
  EXPECT_EQ(parse_config(to_toml(config), "restart"), config);
  EXPECT_EQ(with_list("0.5 1\n", to_toml(config)).output.redshifts, (std::vector<double>{1}));
  const std::string isolated = "[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\n";
  EXPECT_EQ(with_list("0\n2.5 1\n", isolated).output.times, (std::vector<Quantity>{{0, ""}, {2.5, ""}}));
  for (const char* line : {"x", "0.5 y", "0.5 1 2", "0", "-1", "1e5", "1e-5"})
    expect_error([&] { with_list(std::string("0.5\n") + line + "\n", ""); }, {path + " line 2"});
  expect_error([&] { with_list("20\n", ""); }, {"scale factor 20, redshift -0.95 is out of range"});
  expect_error([&] { with_list("0.5\n", "", {"output.redshifts=1"}); }, {"output.redshifts", "both given"});
  EXPECT_EQ(with_list("# Redshift\n0.5\n0\n", "").output.redshifts, (std::vector<double>{0.5, 0}));
}

TEST(ParseConfig, FilesOfParametersOfOthersAreNamed) {
  const std::string named = "parameters of GADGET or SWIFT";
  expect_contains(refusal("InitCondFile  ./ics\nBoxSize  100\n% a comment\nPMGRID 256\n"), {named, "docs/running.md"});
  expect_contains(refusal(
                      "Cosmology:\n  a_end: 1.0\nGravity:\n  mesh_side_length: 64\nTimeIntegration:\n  dt_max: 1\n"),
                  {named});
  expect_contains(refusal("BoxSize 100\n"), {"line 1: not valid TOML"});
}

TEST(ParseConfig, MissingFilesAreNamed) {
  expect_error([&] { load_config("/nonexistent/run.toml"); }, {"/nonexistent/run.toml", "no such file"});
  EXPECT_THROW(load_config("/"), Error);
}

TEST(ParseConfig, OverridesGoThroughTheSameChecks) {
  const Config config =
      parse_config("[gravity]\ntheta = 0.5\n", "run.toml",
                   {"gravity.theta=0.4", "box.size=25 Mpc/h", "particles_per_side=32", "run.name=2020",
                    "output.redshifts=2,1", "transfer=power-law", "run.overwrite=true", "softening=\"3 kpc\""});
  EXPECT_EQ(config.gravity.theta, 0.4);
  EXPECT_EQ(config.box.size, (Quantity{25, "Mpc/h"}));
  EXPECT_EQ(config.initial.particles_per_side, 32);
  EXPECT_EQ(config.run.name, "2020");
  EXPECT_EQ(config.output.redshifts, (std::vector<double>{2, 1}));
  EXPECT_EQ(config.cosmology.transfer, PowerModel::kPowerLaw);
  EXPECT_TRUE(config.run.overwrite);
  EXPECT_EQ(config.gravity.softening, (Quantity{3, "kpc"}));

  expect_contains(refusal("", {"gravity.thta=0.4"}), {"command line", "'gravity.thta'", "'gravity.theta'"});
  expect_contains(refusal("", {"thta=0.4"}), {"command line", "'gravity.theta'"});
  expect_contains(refusal("", {"theta=7"}), {"command line", "gravity.theta", "7", "0.05 to 1.5"});
  expect_contains(refusal("", {"theta=a b"}), {"command line", "gravity.theta", "a b"});
  expect_contains(refusal("", {"kind=isolated"}), {"run.kind", "initial.kind"});
  expect_contains(refusal("", {"theta"}), {"'theta'", "section.key=value"});
  EXPECT_EQ(error_of([] { parse_config("", "defaults", {"theta=7"}, "keywords"); }).find("keywords: gravity.theta"),
            0u);
}

TEST(ParseConfig, OverridesNeedNoLeadingZero) {
  const Config config =
      parse_config("", "run.toml", {"theta=.5", "fixed_step=.01", "softening=.02", "output.redshifts=2,.5", "name=.5"});
  EXPECT_EQ(config.gravity.theta, 0.5);
  EXPECT_EQ(config.time.fixed_step, 0.01);
  EXPECT_EQ(config.gravity.softening, (Quantity{0.02, ""}));
  EXPECT_EQ(config.output.redshifts, (std::vector<double>{2, 0.5}));
  EXPECT_EQ(config.run.name, ".5");
  EXPECT_EQ(parse_config("", "run.toml", {"run.name=\"a.5\""}).run.name, "a.5");
  expect_contains(refusal("", {"end_redshift=-.95"}), {"-0.95"});
  expect_contains(refusal("", {"theta=1.2.5"}), {"\"1.2.5\" does not fit"});
}

TEST(PrintConfig, DumpParsesToTheSameConfiguration) {
  Config config;
  config.run.name = "back\\slash \"quote\" \x01";
  config.box.size = Quantity{1.0 / 3, "Gpc/h"};
  config.gravity.theta = 0.1 + 0.2;
  config.gravity.split = Split::kS2;
  config.gravity.reuse = 7;
  config.time.fixed_step = 1e-300;
  config.output.redshifts = {1e3, 1.0 / 7, 0};
  EXPECT_EQ(parse_config(to_toml(config), "dump"), config);

  Config isolated;
  isolated.run.kind = RunKind::kIsolated;
  isolated.initial.kind = InitialKind::kKeplerDisk;
  isolated.units.length = Quantity{1, "AU"};
  isolated.initial.particles = 12;
  isolated.gravity.method = Method::kDirect;
  isolated.output.times = {{1, ""}, {2.5, "Gyr"}};
  EXPECT_EQ(parse_config(to_toml(isolated), "dump"), isolated);
}

TEST(PrintConfig, DescriptionIsAConfigurationOfDefaults) {
  EXPECT_EQ(parse_config(describe_keys(), "description"), Config());
}

TEST(Keys, EachIsDocumentedAndUnique) {
  std::vector<std::string> paths;
  const std::string text = describe_keys();
  for (const Key& key : config_keys()) {
    EXPECT_GT(key.meaning.size(), 5u) << key.path();
    EXPECT_EQ(std::count(paths.begin(), paths.end(), key.path()), 0) << key.path();
    EXPECT_NE(text.find("\n" + key.name + " = "), text.find("\n# " + key.name + " = ")) << key.path();
    paths.push_back(key.path());
  }
}

// As many keys as the struct has fields: none is left out of the table.
TEST(Keys, TableCoversTheStruct) {
  const std::string path = source_directory() + "/src/config/config.hpp";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here: a bundle has no sources";
  std::size_t fields = 0;
  bool inside = false;
  for (const std::string& line : lines_of(path)) {
    if (line.starts_with("  struct ")) inside = true;
    if (line.starts_with("  } ")) inside = false;
    if (!inside || line.find("operator") != std::string::npos || !line.ends_with(";")) continue;
    fields += 1 + static_cast<std::size_t>(
                      line.find('{') == std::string::npos ? std::count(line.begin(), line.end(), ',') : 0);
  }
  EXPECT_EQ(fields, config_keys().size());
}

TEST(Configs, EveryOneParses) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_directory() + "/configs")) {
    if (entry.path().extension() != ".toml") continue;
    SCOPED_TRACE(entry.path());
    EXPECT_NO_THROW(load_config(entry.path())) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 7u);
}

constexpr double kH = 0.7;

double length(const std::string& text, const UnitSystem& units) {
  return in_units(parse_quantity(text, Dimension::kLength), Dimension::kLength, "Mpc/h", units, kH);
}

TEST(Quantity, ReadsNumbersWithUnits) {
  EXPECT_EQ(parse_quantity("50 Mpc/h", Dimension::kLength), (Quantity{50, "Mpc/h"}));
  EXPECT_EQ(parse_quantity("50Mpc/h", Dimension::kLength), (Quantity{50, "Mpc/h"}));
  EXPECT_EQ(parse_quantity("1e10 Msun", Dimension::kMass), (Quantity{1e10, "Msun"}));
  EXPECT_EQ(parse_quantity("3", Dimension::kLength), (Quantity{3, ""}));
  EXPECT_THROW(parse_quantity("", Dimension::kLength), Error);
  EXPECT_THROW(parse_quantity("Mpc", Dimension::kLength), Error);
  EXPECT_THROW(parse_quantity("3 Mpc x", Dimension::kLength), Error);
  EXPECT_THROW(parse_quantity("inf Mpc", Dimension::kLength), Error);
  EXPECT_THROW(parse_quantity("3 min", Dimension::kLength), Error);
}

TEST(Quantity, WritesWhatItReads) {
  for (const Quantity& quantity :
       {Quantity{0.1, "kpc/h"}, Quantity{1.0 / 3, "Gpc"}, Quantity{1e300, "AU"}, Quantity{7, ""}})
    EXPECT_EQ(parse_quantity(to_string(quantity), Dimension::kLength), quantity);
}

TEST(Quantity, ConvertsToUnitsWithAndWithoutH) {
  const UnitSystem mpc_h;
  EXPECT_EQ(length("50 Mpc/h", mpc_h), 50);  // exactly
  EXPECT_EQ(length("50", mpc_h), 50);
  EXPECT_NEAR(length("20 kpc/h", mpc_h), 0.02, 1e-17);
  EXPECT_NEAR(length("30 Mpc", mpc_h), 30 * kH, 1e-14);
  const UnitSystem kpc{.length_cgs = 1e-3 * kMpcCgs, .with_h = false};
  EXPECT_NEAR(length("7 Mpc/h", kpc), 7000 / kH, 1e-10);
  EXPECT_NEAR(length("1 pc", kpc), 1e-3, 1e-17);
  EXPECT_NEAR(in_units({1e10, "Msun"}, Dimension::kMass, "", mpc_h, kH), kH, 1e-12);
  // Mpc/(km/s) is 977.79 Gyr.
  EXPECT_NEAR(in_units({977.7922, "Gyr"}, Dimension::kTime, "", mpc_h, 1), 1, 1e-6);
}

TEST(Quantity, PureNumbersTakeNoUnits) {
  const UnitSystem pure{1, 1, 1, false};
  EXPECT_EQ(in_units({0.3, ""}, Dimension::kLength, "", pure, 1), 0.3);
  EXPECT_THROW(in_units({0.3, "kpc"}, Dimension::kLength, "", pure, 1), Error);
}

TEST(Quantity, WallTimeAndMemory) {
  EXPECT_EQ(in_base({0.5, "h"}, Dimension::kWallTime, "s"), 1800);
  EXPECT_EQ(in_base({90, ""}, Dimension::kWallTime, "s"), 90);
  EXPECT_EQ(in_base({2, "GB"}, Dimension::kMemory, "B"), 2e9);
}

TEST(UnitName, IsWhatPeopleWrite) {
  const UnitSystem gadget;
  EXPECT_EQ(unit_name(gadget, Dimension::kLength), "Mpc/h");
  EXPECT_EQ(unit_name(gadget, Dimension::kMass), "1e10 Msun/h");
  EXPECT_EQ(unit_name(gadget, Dimension::kVelocity), "km/s");
  const UnitSystem physical{3.085677581491367e21, 1.988409870698051e33, 1e5, false};
  EXPECT_EQ(unit_name(physical, Dimension::kLength), "kpc");
  EXPECT_EQ(unit_name(physical, Dimension::kMass), "Msun");
  EXPECT_EQ(unit_name({1, 1, 1, false}, Dimension::kMass), "");
  EXPECT_EQ(unit_name({123, 4.5, 7, true}, Dimension::kMass), "4.5 g/h");
  EXPECT_EQ(unit_name(physical, Dimension::kTime), "kpc/(km/s)");
  EXPECT_EQ(unit_name({1, 1, 1, false}, Dimension::kTime), "");
  EXPECT_EQ(unit_name({123, 4.5, 6, false}, Dimension::kTime), "x 20.5 s");
  EXPECT_EQ(time_text(0.25, {2.5, "Gyr"}), "0.1 Gyr");
  EXPECT_EQ(time_text(1.0 / 3, {}), "0.333333");
}

}  // namespace
}  // namespace maki
