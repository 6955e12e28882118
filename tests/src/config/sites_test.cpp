// [sites] as users get it right and wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "kernels/error.hpp"
#include "src/cli/wan/path_options.hpp"
#include "src/config/parse.hpp"
#include "src/config/site_tables.hpp"
#include "tests/messages.hpp"
#include "tests/temp_dir.hpp"
#include "wan/net/secure/key.hpp"

namespace maki {
namespace {

using namespace test;

constexpr const char* kTwo = R"(
[sites]
ring = ["amsterdam", "tokyo"]
key = "our.key"
max_boundary_move = 0.01
[sites.amsterdam]
address = "amsterdam.example:6000"
[sites.tokyo]
relay = "gate.example:7000"
relay_key = "gate.key"
relay_target = "tokyo"
[sites.path]
streams = 32
patience = "2 min"
pacing = "800 Mbit/s"
)";

// The message with which a configuration is refused, or "".
std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return error_of([&] { parse_config(text, "run.toml", overrides); });
}

TEST(ConfigSites, AreRead) {
  const Config config = parse_config(kTwo, "run.toml");
  EXPECT_EQ(config.sites.ring, (std::vector<std::string>{"amsterdam", "tokyo"}));
  EXPECT_EQ(config.sites.max_boundary_move, 0.01);
  EXPECT_EQ(find_site(config, "amsterdam").address, "amsterdam.example:6000");
  EXPECT_EQ(find_site(config, "tokyo").relay_target, "tokyo");
  EXPECT_EQ(place_in_ring(config, "tokyo"), 1);
  const PathChoices path = site_path(config);
  EXPECT_EQ(path.settings.streams, 32);
  EXPECT_DOUBLE_EQ(path.settings.patience, 120);
  EXPECT_DOUBLE_EQ(path.settings.pacing_rate, 1e8);
  EXPECT_EQ(path.security.key_files, std::vector<std::string>{"our.key"});
  EXPECT_TRUE(parse_config("", "none").sites.ring.empty());
}

TEST(ConfigSites, SettingsOfTheCommandLineReachThem) {
  const Config config = parse_config(kTwo, "run.toml",
                                     {"sites.amsterdam.address=localhost:7001", "sites.amsterdam.listen=:7001",
                                      "sites.path.streams=4", "sites.key=other.key", "ring=tokyo,amsterdam"});
  EXPECT_EQ(find_site(config, "amsterdam").address, "localhost:7001");
  EXPECT_EQ(find_site(config, "amsterdam").listen, ":7001");
  EXPECT_EQ(site_path(config).settings.streams, 4);
  EXPECT_EQ(site_path(config).security.key_files, std::vector<std::string>{"other.key"});
  EXPECT_EQ(place_in_ring(config, "tokyo"), 0);
}

constexpr const char* kThree = R"(
[sites]
ring = ["amsterdam", "tokyo", "oslo"]
key = "our.key"
[sites.amsterdam]
address = "amsterdam.example:6000"
key = "amsterdam.key"
[sites.amsterdam.path]
pacing = "96 Mbit/s"
[sites.oslo.path]
streams = 8
[sites.path]
streams = 32
pacing = "800 Mbit/s"
)";

TEST(ConfigSites, LinksAreSafeFromTheSettingsOfOthers) {
  const Config config = parse_config(kThree, "run.toml", {"sites.amsterdam.path.window=64 MiB"});
  EXPECT_EQ(site_path(config, "amsterdam").settings.unmatched_limit, std::size_t{1} << 32);
  EXPECT_EQ(site_path(config, "tokyo").settings.unmatched_limit, std::size_t{1} << 28);
  expect_contains(refusal(kThree, {"sites.oslo.path.heartbeat=10 min"}), {"sites.oslo.path"});
}

// What `maki wan bench` prints, under another heading.
TEST(ConfigSites, WhatABenchPrintsCanBePasted) {
  PathChoices found;
  found.settings.streams = 12;
  found.settings.pacing_rate = 12e6;
  found.security.key_files = {"the.key"};
  const std::string printed = path_toml(found), lines = printed.substr(printed.find('\n'));
  const std::string ring = "[sites]\nring = ['a', 'b', 'c']\n";
  const Config of_link = parse_config(ring + "[sites.b.path]" + lines, "run.toml");
  EXPECT_EQ(path_toml(site_path(of_link, "b")), printed);
  EXPECT_THROW(site_path(of_link, "a"), Error);
  EXPECT_EQ(path_toml(site_path(parse_config(ring + "[sites.path]" + lines, "run.toml"), "c")), printed);
}

TEST(ConfigSites, KeysOfLinksAreKeptForARunThatGoesOn) {
  const Config config = parse_config(kThree, "run.toml", {"sites.oslo.key=/o.key", "sites.path.authority=/all.pem"});
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(key_settings(config), (std::vector<std::string>{"sites.key=" + here + "/our.key",
                                                            "sites.amsterdam.key=" + here + "/amsterdam.key",
                                                            "sites.oslo.key=/o.key", "sites.path.authority=/all.pem"}));
  const std::string text = to_toml(config);
  EXPECT_EQ(text.find(".key\""), std::string::npos) << "keys are not printed";
  const Config again = parse_config(text, "again", key_settings(config));
  EXPECT_EQ(to_toml(again), text);
  EXPECT_EQ(path_toml(site_path(again, "oslo")), path_toml(site_path(config, "oslo")));
}

// What the path can have on its way is not to be held back for want of memory at its end, unless somebody says so.
TEST(ConfigSites, RoomForWhatComesUnaskedFollowsThePath) {
  const auto room = [](const std::vector<std::string>& settings) {
    return site_path(parse_config(kTwo, "run.toml", settings)).settings.unmatched_limit;
  };
  EXPECT_EQ(room({}), std::size_t{1} << 28);  // 800 Mbit/s
  EXPECT_EQ(room({"sites.path.pacing=40000 Mbit/s"}), 5'000'000'000u);
  EXPECT_EQ(room({"sites.path.streams=64", "sites.path.window=8 MiB"}), std::size_t{1} << 30);
  EXPECT_EQ(room({"sites.path.pacing=40000 Mbit/s", "sites.path.unmatched_limit=64 MB"}), 64'000'000u);
}

TEST(ConfigSites, PrintedAndReadAgain) {
  Config config = parse_config(kTwo, "run.toml");
  const std::string text = to_toml(config);
  EXPECT_EQ(text.find("our.key"), std::string::npos) << "keys are not printed";
  const Config again = parse_config(text, "again");
  EXPECT_EQ(to_toml(again), text);
  EXPECT_EQ(again.sites.ring, config.sites.ring);
  EXPECT_EQ(again.site_addresses, config.site_addresses);
  EXPECT_THROW(site_path(again), Error);
  EXPECT_EQ(path_toml(site_path(parse_config(text, "again", {"sites.key=our.key"}))), path_toml(site_path(config)));
  expect_lacks(to_toml(Config()), {"sites"});
}

// What differs from site to site is not compared, and all else is.
TEST(ConfigSites, WhatAllHaveAlike) {
  const auto lines = [](const std::vector<std::string>& overrides) {
    return lines_of_all_sites(parse_config(kTwo, "run.toml", overrides));
  };
  const std::vector<std::string> all = lines({});
  const auto has = [&](const std::string& line) { return std::count(all.begin(), all.end(), line) == 1; };
  EXPECT_TRUE(has("cosmology.sigma8 = 0.829"));
  EXPECT_TRUE(has("sites.ring = [\"amsterdam\", \"tokyo\"]"));
  for (const char* own :
       {"run.output_directory=x", "run.overwrite=true", "run.threads=3", "run.device=1", "sites.key=z",
        "run.time_limit=1 h", "gravity.list_memory=1 GB", "sites.amsterdam.listen=:1", "sites.amsterdam.address=b:1",
        "sites.path.pacing=1 MB/s", "sites.amsterdam.key=z", "sites.amsterdam.path.pacing=1 MB/s"})
    EXPECT_EQ(lines({own}), all) << own;
  for (const char* common : {"run.name=x", "sigma8=0.8", "initial.seed=2", "gravity.theta=0.4", "run.preset=fast",
                             "max_boundary_move=0", "ring=tokyo,amsterdam", "output.redshifts=3", "deterministic=true"})
    EXPECT_NE(lines({common}), all) << common;
}

TEST(ConfigSites, AKeyIsAskedForWherePathsAreMade) {
  expect_error([&] { site_path(parse_config(kTwo, "run.toml", {"sites.key="})); }, {"sites.key", "keygen"});
  EXPECT_TRUE(site_path(parse_config(kTwo, "run.toml", {"sites.key=", "sites.path.insecure=true"})).security.insecure);
}

TEST(ConfigSites, NoRelayHasTheKeyOfALink) {
  const TempDir folder;
  const std::string link = folder.path("link.key"), copy = folder.path("copy.key");
  wan::write_key(wan::Key::make(), link);
  wan::write_key(wan::read_key(link), copy);
  const std::vector<std::string> parts = {"sites.tokyo.relay_key", "could read", "a key of its own"};
  expect_contains(refusal(kTwo, {"sites.key=" + link, "sites.tokyo.relay_key=" + copy}), parts);
  expect_contains(refusal(kTwo, {"sites.amsterdam.key=gate.key"}), parts);
  EXPECT_EQ(refusal(kTwo, {"sites.key=" + link}), "");
}

TEST(ConfigSites, MistakesAreNamedWithTheirPlace) {
  const std::string two = kTwo;
  expect_contains(refusal("[sites.path]\nstreems = 3\n"), {"run.toml line 2", "sites.path.streems", "'streams'"});
  expect_contains(refusal("[sites.path]\nstreams = 300\n"), {"line 2", "sites.path.streams", "300", "1 to 256"});
  expect_contains(refusal("[sites]\nkey = 'b'\n[sites.path]\nkey = 'a'\n"),
                  {"line 4", "sites.path.key", "'b' already"});
  expect_contains(refusal("[sites.path]\nrelay = 'a:1'\n"), {"line 2", "belongs to a site"});
  expect_contains(refusal("[sites.tokyo]\nadress = 'a:1'\n"), {"line 2", "sites.tokyo.adress", "'address'"});
  expect_contains(refusal("[sites.tokyo]\naddress = 6000\n"), {"line 2", "sites.tokyo.address", "text in quotes"});
  expect_contains(refusal("[sites.'to kyo']\naddress = 'a:1'\n"), {"line 2", "'to kyo'", "letters"});
  expect_contains(refusal("[sites]\nring = 'a'\n"), {"line 2", "sites.ring", "a list of texts"});
  expect_contains(refusal("[sites]\nring = [1, 2]\n"), {"line 2", "sites.ring", "a list of texts"});
  expect_contains(refusal(two + "[sites.tokio]\naddress = 'a:1'\n"), {"run.toml", "'tokio'", "'tokyo'"});
  expect_contains(refusal(two, {"ring=amsterdam,tokyo,amsterdam"}), {"more than once", "amsterdam"});
  expect_contains(refusal(two, {"sites.amsterdam.address=host"}), {"sites.amsterdam.address", "host"});
  expect_contains(refusal(two, {"sites.amsterdam.address=:6000"}), {"sites.amsterdam.address", "no host"});
  expect_contains(refusal(two, {"sites.tokyo.relay_key="}), {"sites.tokyo", "relay_key is missing"});
  expect_contains(refusal(two, {"sites.path.heartbeat=10 min"}), {"sites.path"});
  expect_contains(refusal("[sites.tokyo.path]\nstreems = 3\n"),
                  {"run.toml line 2", "sites.tokyo.path.streems", "'streams'"});
  expect_contains(refusal("[sites.tokyo.pth]\nstreams = 3\n"), {"line 1", "[sites.tokyo.pth]", "[sites.NAME.path]"});
  expect_contains(refusal("[sites.tokyo]\npath = 3\n"), {"line 2", "sites.tokyo.path"});
  expect_contains(refusal("[sites.tokyo.path]\ninsecure = true\n"), {"line 2", "alike for all links", "[sites.path]"});
  expect_contains(refusal("[sites.tokyo.path]\nrelay = 'a:1'\n"), {"line 2", "belongs to a site"});
  expect_contains(refusal("[sites.tokyo]\nkey = 'a'\n[sites.tokyo.path]\nkey = 'b'\n"), {"line 4", "'a' already"});
  expect_contains(refusal(two, {"sites.tokyo.key=b.key"}),
                  {"sites.tokyo.key", "two sites have one link", "sites.amsterdam.key"});
  expect_contains(refusal(two, {"sites.tokyo.path.streams=2"}), {"sites.tokyo.path", "sites.amsterdam.path"});
}

}  // namespace
}  // namespace maki
