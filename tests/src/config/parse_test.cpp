// Configurations as users get them right and wrong.
#include "src/config/parse.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "kernels/error.hpp"
#include "src/config/keys.hpp"
#include "src/config/print.hpp"
#include "tests/places.hpp"

namespace maki {
namespace {

// The message with which a configuration is refused, or "".
std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse_config(text, "run.toml", overrides);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_words(const std::string& message, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    EXPECT_NE(message.find(word), std::string::npos) << "'" << word << "' is missing in: " << message;
  }
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
  expect_words(refusal("[run]\n\n[gravity]\nsofening = 3\n"),
               {"run.toml line 4", "'gravity.sofening'", "'gravity.softening'"});
  expect_words(refusal("[cosmology]\nHubbleParam = 0.7\n"), {"line 2", "'cosmology.hubble_param'"});
  expect_words(refusal("[cosmology]\nOmegaLambda = 0.7\n"), {"'cosmology.omega_lambda'"});
  expect_words(refusal("[run]\ntheta = 0.5\n"), {"'gravity.theta'"});     // right name, wrong section
  expect_words(refusal("[gravty]\ntheta = 0.5\n"), {"'gravity.theta'"});  // wrong section
  expect_words(refusal("softening = 0.5\n"), {"line 1", "'gravity.softening'"});
}

TEST(ParseConfig, WrongTypesSayWhatWasExpected) {
  expect_words(refusal("[gravity]\ntheta = \"wide\"\n"),
               {"run.toml line 2", "gravity.theta", "\"wide\"", "a number", "0.05 to 1.5"});
  expect_words(refusal("[gravity]\nmesh = 64.5\n"), {"gravity.mesh", "64.5", "an integer"});
  expect_words(refusal("[run]\noverwrite = 1\n"), {"run.overwrite", "true or false"});
  expect_words(refusal("[run]\nname = 3\n"), {"run.name", "text in quotes"});
  expect_words(refusal("[run]\nkind = \"cosmolgy\"\n"), {"run.kind", "\"cosmolgy\"", "\"cosmology\", \"isolated\""});
  expect_words(refusal("[output]\nredshifts = 3\n"), {"output.redshifts", "a list of numbers"});
  expect_words(refusal("[output]\nredshifts = [3, \"x\"]\n"), {"output.redshifts", "numbers"});
  expect_words(refusal("[run]\nname = 1979-05-27\n"), {"run.name"});
  expect_words(refusal("[run.name]\nx = 1\n"), {"run.name"});
}

TEST(ParseConfig, RangesAreChecked) {
  expect_words(refusal("[gravity]\ntheta = 7\n"), {"run.toml line 2", "gravity.theta", "7", "0.05 to 1.5"});
  expect_words(refusal("[gravity]\ntheta = nan\n"), {"gravity.theta", "nan"});
  expect_words(refusal("[box]\nsize = \"-5 Mpc/h\"\n"), {"box.size", "above 0"});
  expect_words(refusal("[box]\nsize = inf\n"), {"box.size"});
  expect_words(refusal("[initial]\nredshift = 0\n"), {"initial.redshift", "above 0, at most 1000"});
  expect_words(refusal("[output]\nredshifts = [1, -3]\n"), {"output.redshifts", "-3"});
  expect_words(refusal("[output]\ncompression = 10\n"), {"output.compression", "0 to 9"});
}

TEST(ParseConfig, UnitsAreChecked) {
  expect_words(refusal("[box]\nsize = \"50 Mcp/h\"\n"), {"line 2", "box.size", "'Mcp/h'", "Mpc/h"});
  expect_words(refusal("[box]\nsize = \"50 s\"\n"), {"box.size", "length"});
  expect_words(refusal("[box]\nsize = \"large\"\n"), {"box.size", "'large'", "number"});
}

TEST(ParseConfig, NoTomlIsAnErrorWithItsLine) {
  expect_words(refusal("[run]\nname = \n"), {"run.toml line 2", "TOML"});
  expect_words(refusal("[run]\nname = \"a\"\nname = \"b\"\n"), {"run.toml line 3", "TOML"});
}

TEST(ParseConfig, KeysWithoutMeaningForTheRunAreRefused) {
  expect_words(refusal("[run]\nkind = \"isolated\"\n[cosmology]\nomega0 = 0.3\n"),
               {"line 4", "cosmology.omega0", "isolated"});
  expect_words(refusal("[initial]\neccentricity = 0.3\n"), {"line 2", "initial.eccentricity", "lpt"});
  expect_words(refusal("", {"time.end_time=3"}), {"command line", "time.end_time"});
}

TEST(ParseConfig, MissingFilesAreNamed) {
  try {
    load_config("/nonexistent/run.toml");
    FAIL();
  } catch (const Error& error) {
    expect_words(error.what(), {"/nonexistent/run.toml", "no such file"});
  }
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

  expect_words(refusal("", {"gravity.thta=0.4"}), {"command line", "'gravity.thta'", "'gravity.theta'"});
  expect_words(refusal("", {"thta=0.4"}), {"command line", "'gravity.theta'"});
  expect_words(refusal("", {"theta=7"}), {"command line", "gravity.theta", "7", "0.05 to 1.5"});
  expect_words(refusal("", {"theta=a b"}), {"command line", "gravity.theta", "a b"});
  expect_words(refusal("", {"kind=isolated"}), {"run.kind", "initial.kind"});
  expect_words(refusal("", {"theta"}), {"'theta'", "section.key=value"});
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
  isolated.output.times = {1, 2.5};
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

// Setting every key to something else than its default has to change every field: none is left out of the table.
TEST(Keys, TableCoversTheStruct) {
  const std::string path = test::source_directory() + "/src/config/config.hpp";
  std::ifstream source(path);
  if (!source) GTEST_SKIP() << path << " is not here: a bundle has no sources";
  std::size_t fields = 0;
  bool inside = false;
  for (std::string line; std::getline(source, line);) {
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
  for (const auto& entry : std::filesystem::directory_iterator(test::source_directory() + "/configs")) {
    if (entry.path().extension() != ".toml") continue;
    SCOPED_TRACE(entry.path());
    EXPECT_NO_THROW(load_config(entry.path())) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 7u);
}

}  // namespace
}  // namespace maki
