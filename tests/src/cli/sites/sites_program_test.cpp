// `maki run --site` and `maki sites check`, as users at two sites call them.
#include <cmath>
#include <map>
#include <set>

#include "src/io/snapshot_io.hpp"
#include "tests/src/cli/sites/two_programs.hpp"

namespace maki::test {
namespace {

namespace fs = std::filesystem;

class SitesProgram : public TwoPrograms {
 protected:
  void expect_refused(const Results& results, const std::vector<std::string>& words) const {
    for (const CallResult& result : results) {
      EXPECT_EQ(result.code, 1) << result.output;
      expect_words(result, {"maki: error:"});
    }
    expect_words({0, results[0].output + results[1].output}, words);
    EXPECT_FALSE(fs::exists(path("output"))) << "a run that is refused leaves nothing";
  }
  std::string run(const std::string& settings = "") const { return "run " + config() + " " + settings; }
};

TEST_F(SitesProgram, ASiteHasToSayWhichItIs) {
  for (const char* site : {"", " --site c"}) {
    const CallResult result = call(run() + site);
    EXPECT_EQ(result.code, 1);
    expect_words(result, {"--site", "a, b"});
  }
  EXPECT_EQ(call("run " + config() + " --estimate").code, 0);
}

TEST_F(SitesProgram, AnotherConfigurationIsRefusedWithTheDifference) {
  expect_refused(both(run(), run("theta=0.4 run.threads=1")), {"gravity.theta", "0.7", "0.4", "site a", "site b"});
}

TEST_F(SitesProgram, AnotherCosmologyIsRefusedWithTheDifference) {
  expect_refused(both(run("omega0=0.3"), run()), {"cosmology.omega0", "0.3", "0.308"});
}

TEST_F(SitesProgram, AnotherKeyIsRefused) {
  const std::string short_wait = "sites.wait=4 ";
  const Results results = both(run(short_wait), run(short_wait + "sites.key=" + path("other.key")));
  expect_refused(results, {"key"});
  for (const CallResult& result : results) expect_words(result, {"key"});
}

// The same program but for the commit that it says it is of.
TEST_F(SitesProgram, AnotherVersionIsRefusedWithBoth) {
  const std::string said = call("--version").output;
  const auto begin = said.find("commit") + 6;
  const auto first = said.find_first_not_of(' ', begin);
  const std::string hash = said.substr(first, said.find('\n', first) - first);
  std::ifstream original(program(), std::ios::binary);
  std::string binary{std::istreambuf_iterator<char>(original), {}};
  std::string other = hash;
  other[0] = other[0] == '0' ? '1' : '0';
  for (auto at = binary.find(hash); at != std::string::npos; at = binary.find(hash, at))
    binary.replace(at, hash.size(), other);
  const std::string copy = program() + "_of_" + std::to_string(getpid());  // where it finds the same libraries
  std::ofstream(copy, std::ios::binary) << binary;
  std::error_code failure;
  fs::permissions(copy, fs::perms::owner_all, failure);
  if (failure) GTEST_SKIP() << "no program can be written beside " << program();
  const Results results = both(run(), run(), copy);
  fs::remove(copy);
  expect_refused(results, {hash, other});
}

// Site b has two ranks.
TEST_F(SitesProgram, TwoSitesMakeOneRun) {
  const Results results = both(run(), run(), over_ranks(2));
  expect_words(results[1], {"2 ranks on"});
  for (const int i : {0, 1}) {
    const CallResult& result = results[static_cast<std::size_t>(i)];
    const std::string site = i == 0 ? "a" : "b", directory = "output/two/" + site;
    ASSERT_EQ(result.code, 0) << result.output;
    expect_words(result, {"site " + site, "ring a, b", "4096 particles", "path to", "2 of 2 streams", directory});
    EXPECT_TRUE(fs::exists(path(directory + "/log.txt")));
    const std::string file = "/snapshot_000." + std::to_string(i) + ".hdf5";
    ASSERT_TRUE(fs::exists(path(directory + file))) << result.output;
    fs::copy(path(directory + file), directory_.string() + file);
  }
  const Snapshot all = read_snapshot(path("snapshot_000.0.hdf5"));
  EXPECT_EQ(all.size(), 4096u);
  EXPECT_EQ(std::set<std::uint64_t>(all.ids.begin(), all.ids.end()).size(), 4096u);
  for (const CallResult& result : both(run(), run("run.overwrite=true")))
    EXPECT_EQ(result.code, 1) << "the directory of a holds a run";
}

// The same particles in the same places with the same momenta, to the last bit.
TEST_F(SitesProgram, ARelayChangesNothing) {
  const auto states = [&](const std::string& settings) {
    const std::string common =
        run("sites.max_boundary_move=0 run.deterministic=true run.overwrite=true output.image=false " + settings);
    std::map<std::uint64_t, std::pair<std::array<double, 3>, std::array<float, 3>>> found;
    const Results results = both(common, common);
    for (const CallResult& result : results) EXPECT_EQ(result.code, 0) << result.output;
    const Snapshot set = read_snapshot(collect("snapshot_000"));
    for (std::size_t i = 0; i < set.size(); ++i) found[set.ids[i]] = {set.positions[i], set.velocities[i]};
    return std::pair{found, results[1].output};
  };
  const auto [direct, said] = states("");
  const std::string relay = "127.0.0.1:" + std::to_string(free_ports<1>()[0]);
  const CallResult started = call_shell(program() + " wan relay --listen " + relay + " --key " + path("other.key") +
                                        " > " + path("relay.log") + " 2>&1 & echo $!");
  const auto [relayed, said_then] = states("sites.a.address= sites.b.address= sites.a.relay=" + relay +
                                           " sites.a.relay_target=a sites.a.relay_key=" + path("other.key"));
  call_shell("kill " + started.output);
  EXPECT_NE(said_then.find("by the relay " + relay), std::string::npos) << said_then;
  EXPECT_EQ(direct.size(), 4096u);
  EXPECT_EQ(relayed, direct);
}

// An isolated set: no box that repeats itself, no mesh. The run at one site, and its end again from a restart.
TEST_F(SitesProgram, APlummerSphereAtTwoSites) {
  const auto positions = [&](const std::string& file) {
    const Snapshot set = read_snapshot(path(file));
    std::map<std::uint64_t, std::array<double, 3>> found;
    for (std::size_t i = 0; i < set.size(); ++i) found[set.ids[i]] = set.positions[i];
    return found;
  };
  const auto expect_near = [&](const Results& results) {
    for (const int i : {0, 1}) {
      const CallResult& result = results[static_cast<std::size_t>(i)];
      EXPECT_EQ(result.code, 0) << result.output;
      const std::string name = "snapshot_001." + std::to_string(i) + ".hdf5";
      fs::copy(path(std::string("output/sphere/") + (i == 0 ? "a/" : "b/") + name), path(name),
               fs::copy_options::overwrite_existing);
    }
    const auto one = positions("output/sphere/snapshot_001.hdf5"), two = positions("snapshot_001.0.hdf5");
    ASSERT_EQ(two.size(), one.size());
    double sum = 0;
    for (const auto& [id, position] : one)
      for (std::size_t axis = 0; axis < 3; ++axis) sum += std::pow(two.at(id)[axis] - position[axis], 2);
    EXPECT_LT(std::sqrt(sum / static_cast<double>(one.size())), 1e-3) << "the scale length is 1";
  };
  const CallResult one = call("run sphere_at_one.toml");
  ASSERT_EQ(one.code, 0) << one.output;
  const std::string command = "run sphere.toml run.restart_steps=5";
  const Results two = both(command, command);
  expect_near(two);
  for (const CallResult& result : two) expect_words(result, {"1000 particles", "Efficiency E(2) = ", "trees, a step"});
  for (const std::string site : {"a", "b"}) EXPECT_TRUE(fs::exists(path("output/sphere/" + site + "/image_001.png")));
  const Results resumed = both("resume output/sphere/a", "resume output/sphere/b");
  expect_near(resumed);
  for (const CallResult& result : resumed) expect_words(result, {"Resumed from", "Efficiency E(2) = "});
  const std::string direct = "run sphere.toml gravity.method=direct";
  expect_words(both(direct, direct)[0], {"direct sums are not for several sites", "gravity.method"});
}

TEST_F(SitesProgram, ACheckFindsWhatIsWrong) {
  const std::string check = "sites check " + config() + " --wait 30 ";
  const Results good = both(check, check);
  for (const CallResult& result : good) {
    EXPECT_EQ(result.code, 0) << result.output;
    expect_words(result, {"reached", "the same", "ms", "Mbit/s", "Nothing is wrong"});
  }
  for (const CallResult& result : both(check, check + "theta=0.4")) {
    EXPECT_EQ(result.code, 1) << result.output;
    expect_words(result, {"DIFFERENT", "gravity.theta", "0.4"});
  }
  const CallResult alone = call("sites check " + config() + " --site a --no-measure");
  EXPECT_EQ(alone.code, 0) << alone.output;
  expect_words(alone, {"were not called"});
  const CallResult no_key = call("sites check " + config() + " --site a --no-measure sites.key=none.key");
  EXPECT_EQ(no_key.code, 1);
  expect_words(no_key, {"What is wrong", "none.key"});
  const CallResult missing = call("sites check " + config() + " --site a --wait 1");
  EXPECT_EQ(missing.code, 1);
  expect_words(missing, {"b", "not reached"});
}

}  // namespace
}  // namespace maki::test
