// `maki run --site` and `maki sites check`, as users at two sites call them.
#include <cmath>

#include "src/io/json.hpp"
#include "src/report/figures.hpp"
#include "tests/src/cli/sites/two_programs.hpp"

namespace maki::test {
namespace {

class SitesProgram : public TwoPrograms {
 protected:
  void expect_refused(const Results& results, const std::vector<std::string>& words) const {
    expect_end(results, 1, {"maki: error:"});
    expect_contains(results[0].output + results[1].output, words);
    EXPECT_FALSE(fs::exists(path("output"))) << "a run that is refused leaves nothing";
  }
  std::string run(const std::string& settings = "") const { return "run " + config() + " " + settings; }
};

TEST_F(SitesProgram, ASiteHasToSayWhichItIs) {
  for (const char* site : {"", " --site c"}) expect_end(call(run() + site), 1, {"--site", "a, b"});
  EXPECT_EQ(call("run " + config() + " --estimate").code, 0);
}

TEST_F(SitesProgram, ASiteSaysWhereItsFilesWillBe) {
  EXPECT_EQ(call(run("--where --site b")).output, "output/two/b\n");
  EXPECT_EQ(call(run("output_directory=here/ --where --site b")).output, "here\n");
  EXPECT_EQ(call("run one.toml --where").output, "output/two\n");
  expect_end(call(run("--where")), 1, {"--site", "a, b"});
  EXPECT_FALSE(fs::exists(path("output")));
}

TEST_F(SitesProgram, AnotherConfigurationIsRefusedWithTheDifference) {
  expect_refused(both(run(), run("theta=0.4 run.threads=1")), {"gravity.theta", "0.7", "0.4", "site a", "site b"});
  expect_refused(both(run("omega0=0.3"), run()), {"cosmology.omega0", "0.3", "0.308"});
}

TEST_F(SitesProgram, AnotherKeyIsRefused) {
  const std::string short_wait = "sites.wait=10 ";  // and long enough for both to come
  const Results results = both(run(short_wait), run(short_wait + "sites.key=" + path("other.key")));
  expect_refused(results, {});
  expect_words(results[0], {"site b", "refuses the path", "does not know our key"});
  expect_words(results[1], {"the peer's key", "is not among ours"});
}

// The records of all sites that the metrics have, by step.
std::map<std::string, std::string> known_to_all(const std::string& metrics) {
  std::map<std::string, std::string> known;
  for (const std::string& line : lines_of(metrics))
    if (const auto step = json_member(line, "step")) known[*step] = line.substr(line.find("\"told_of\""));
  return known;
}

// Site b has two ranks. Power spectra, report and records of all sites are the same at both.
TEST_F(SitesProgram, TwoSitesMakeOneRun) {
  const Results results = both(run(), run(), over_ranks(2));
  expect_words(results[1], {"2 ranks on"});
  for (const int i : {0, 1}) {
    const std::string site = i == 0 ? "a" : "b", directory = "output/two/" + site;
    expect_end(results[static_cast<std::size_t>(i)], 0,
               {"site " + site, "ring a, b", "4096 particles", "path to", "2 of 2 streams", directory});
    EXPECT_TRUE(fs::exists(path(directory + "/log.txt")));
  }
  EXPECT_EQ(particles_in(collect("snapshot_000")).size(), 4096u);
  const auto power_at = [&](const std::string& site) {
    EXPECT_GT(text_of(path("output/two/" + site + "/image_000.png")).size(), 100u) << site;
    return report::read_columns(path("output/two/" + site + "/power_000.txt")).columns;
  };
  EXPECT_EQ(power_at("a"), power_at("b"));
  const std::string report = text_of(path("output/two/a/sites_report.txt"));
  EXPECT_EQ(report, text_of(path("output/two/b/sites_report.txt")));
  expect_contains(report, {"Efficiency E(2) = "});
  expect_lacks(report, {"transforms counted"});
  const auto known = known_to_all(path("output/two/a/metrics.jsonl"));
  EXPECT_GT(known.size(), 2u);
  EXPECT_EQ(known, known_to_all(path("output/two/b/metrics.jsonl")));
  for (const Result& result : both(run(), run("run.overwrite=true")))
    EXPECT_EQ(result.code, 1) << "the directory of a holds a run\n" << result.output;
}

// The same particles in the same places with the same momenta, to the last bit.
TEST_F(SitesProgram, ARelayChangesNothing) {
  const auto states = [&](const std::string& settings) {
    const std::string common =
        run("sites.max_boundary_move=0 run.deterministic=true run.overwrite=true output.image=false " + settings);
    const Results results = both(common);
    expect_end(results, 0);
    return std::pair{particles_in(collect("snapshot_000")), results[1].output};
  };
  const auto [direct, said] = states("");
  const std::string relay = "127.0.0.1:" + std::to_string(wan::test::free_ports(1)[0]);
  const StartedCommand running("exec " + program() + " wan relay --listen " + relay + " --key " + path("other.key"),
                               path("relay.log"));
  const auto [relayed, said_then] = states("sites.a.address= sites.b.address= sites.a.relay=" + relay +
                                           " sites.a.relay_target=a sites.a.relay_key=" + path("other.key"));
  expect_contains(said_then, {"by the relay " + relay});
  EXPECT_EQ(direct.size(), 4096u);
  EXPECT_TRUE(relayed == direct);
}

// An isolated set: no box that repeats itself, no mesh. The run at one site, and its end again from a restart.
TEST_F(SitesProgram, APlummerSphereAtTwoSites) {
  const auto expect_near = [&](const Results& results, const std::vector<std::string>& words) {
    expect_end(results, 0, words);
    const ById one = particles_in(path("output/sphere/snapshot_001.hdf5")),
               two = particles_in(collect("snapshot_001", "output/sphere/a", "output/sphere/b"));
    ASSERT_EQ(two.size(), one.size());
    double sum = 0;
    for (const auto& [id, particle] : one)
      for (std::size_t axis = 0; axis < 3; ++axis)
        sum += std::pow(two.at(id).position[axis] - particle.position[axis], 2);
    EXPECT_LT(std::sqrt(sum / static_cast<double>(one.size())), 1e-3) << "the scale length is 1";
  };
  expect_end(call("run sphere_at_one.toml"), 0);
  const std::string command = "run sphere.toml run.restart_steps=5";
  expect_near(both(command), {"1000 particles", "Efficiency E(2) = ", "trees, a step"});
  for (const std::string site : {"a", "b"}) EXPECT_TRUE(fs::exists(path("output/sphere/" + site + "/image_001.png")));
  const std::vector<std::string> restarts = restarts_in(path("output/sphere/a"));  // the last is of the end
  const std::string last = "/" + fs::path(restarts[restarts.size() - 2]).filename().string();
  expect_near(both("resume output/sphere/a" + last, "resume output/sphere/b" + last),
              {"Resumed from", "Efficiency E(2) = "});
  const std::string direct = "run sphere.toml gravity.method=direct";
  expect_words(both(direct)[0], {"direct sums are not for several sites", "gravity.method"});
}

TEST_F(SitesProgram, ACheckFindsWhatIsWrong) {
  const std::string check = "sites check " + config() + " --wait 100 ";
  expect_end(both(check), 0, {"reached", "the same", "ms", "Mbit/s", "Nothing is wrong"});
  expect_end(both(check, check + "theta=0.4"), 1, {"DIFFERENT", "gravity.theta", "0.4"});
  const std::string at_a = "sites check " + config() + " --site a ";
  expect_end(call(at_a + "--no-measure"), 0, {"were not called"});
  expect_end(call(at_a + "--no-measure sites.key=none.key"), 1, {"What is wrong", "none.key"});
  expect_end(call(at_a + "--wait 1"), 1, {"b", "not reached"});
}

}  // namespace
}  // namespace maki::test
