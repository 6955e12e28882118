// Light cones of a deterministic run are the same set of particles on one rank, on several and at two sites.
#include <algorithm>
#include <filesystem>

#include "tests/src/cli/sites/two_programs.hpp"
#include "tests/src/lightcone/cone_reader.hpp"

namespace maki::test {
namespace {

using LightConesOfSites = TwoPrograms;

constexpr const char* kCones =
    " run.deterministic=true output.power_spectrum=false output.image=false end_redshift=4 'box.size=1000 Mpc/h'"
    " 'lightcone.observers=[0, 500, 999]' lightcone.opening_angle=40 'lightcone.edges=[4, 5, 7]' lightcone.nside=8";

TEST_F(LightConesOfSites, HoldWhatOneRankFinds) {
  const CallResult one = call(std::string("run one.toml run.output_directory=one") + kCones);
  ASSERT_EQ(one.code, 0) << one.output;
  const CallResult ranks = call(std::string("run one.toml run.output_directory=ranks") + kCones, over_ranks(2));
  ASSERT_EQ(ranks.code, 0) << ranks.output;
  for (const CallResult& result :
       both(std::string("run two.toml") + kCones, std::string("run two.toml") + kCones, over_ranks(2)))
    ASSERT_EQ(result.code, 0) << result.output;
  for (const std::string shell : {"000", "001"}) {
    const std::string file = "/lightcone_00/conesnap_" + shell, map = "/lightcone_00/map_" + shell;
    const auto wanted = read_shell(path("one" + file + ".hdf5"));
    EXPECT_GT(wanted.size(), 10000u);
    EXPECT_EQ(read_shell(path("ranks" + file + ".hdf5")), wanted);
    auto found = read_shell(path("output/two/a" + file + ".0.hdf5"));
    const auto other = read_shell(path("output/two/b" + file + ".1.hdf5"));
    EXPECT_GT(found.size(), wanted.size() / 4);
    EXPECT_GT(other.size(), wanted.size() / 4);
    found.insert(found.end(), other.begin(), other.end());
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, wanted) << "what both sites hold";
    std::vector<double> sum = read_sky_map(path("output/two/a" + map + ".0.fits"));
    const std::vector<double> more = read_sky_map(path("output/two/b" + map + ".1.fits"));
    ASSERT_EQ(sum.size(), more.size());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
    EXPECT_EQ(sum, read_sky_map(path("one" + map + ".fits")));
    EXPECT_EQ(read_sky_map(path("ranks" + map + ".fits")), sum);
  }
  for (const char* run : {"one", "ranks", "output/two/a", "output/two/b"})
    for (const auto& entry : std::filesystem::directory_iterator(path(std::string(run) + "/lightcone_00")))
      EXPECT_NE(entry.path().extension(), ".spool") << entry.path() << ": there is no restart";
}

}  // namespace
}  // namespace maki::test
