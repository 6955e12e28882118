// Deterministic runs of a periodic box: the same snapshots, bit for bit, and the same light cones on one rank, on
// several and at two sites.
#include <cmath>

#include "src/report/figures.hpp"
#include "tests/src/cli/sites/two_programs.hpp"
#include "tests/src/lightcone/cone_reader.hpp"

namespace maki::test {
namespace {

class SameBits : public TwoPrograms {
 protected:
  // The numbers of a table, column after column.
  static std::vector<double> numbers(const std::string& file) {
    std::vector<double> found;
    for (const auto& [name, column] : report::read_columns(file).columns)
      found.insert(found.end(), column.begin(), column.end());
    return found;
  }
  // One rank transforms the mesh in another way than several. What is 1e-7 apart may round to neighbours among the
  // numbers of six digits that a table has.
  static double last_digit(double value) { return std::pow(10, std::floor(std::log10(std::abs(value))) - 5); }
  void expect_same_power(const std::string& file) const {
    const std::vector<double> found = numbers(path(file)), expected = numbers(path("one/power_001.txt"));
    ASSERT_GT(expected.size(), 50u);
    ASSERT_EQ(found.size(), expected.size()) << file;
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], expected[i] == 0 ? 0 : 1.01 * last_digit(expected[i]))
          << file << " number " << i;
  }
  static void expect_same(const ById& found, const ById& expected, const std::string& where) {
    ASSERT_EQ(found.size(), expected.size()) << where;
    std::size_t others = 0;
    for (const auto& [id, particle] : expected) others += found.contains(id) && found.at(id) == particle ? 0 : 1;
    EXPECT_EQ(others, 0u) << where << ": particles that are not the same";
  }
  void expect_same_everywhere(const std::string& settings) const {
    const std::string all = " run.deterministic=true output.redshifts=[7] output.image=false " + settings;
    expect_end(call("run one.toml run.output_directory=one" + all), 0);
    expect_end(call("run one.toml run.output_directory=ranks" + all, over_ranks(2)), 0);
    // Site b has two ranks.
    expect_end(both("run two.toml" + all, "run two.toml" + all, over_ranks(2)), 0);
    for (const std::string base : {"snapshot_000", "snapshot_001"}) {
      const ById one = particles_in(path("one/" + base + ".hdf5"));
      expect_same(particles_in(path("ranks/" + base + ".hdf5")), one, base + " of two ranks");
      expect_same(particles_in(collect(base)), one, base + " of two sites");
    }
    for (const std::string directory : {"ranks", "output/two/a", "output/two/b"})
      expect_same_power(directory + "/power_001.txt");
  }
};

TEST_F(SameBits, OnOneRankOnSeveralAndAtTwoSites) { expect_same_everywhere("end_redshift=4"); }

TEST_F(SameBits, OfMoreParticlesWithOtherLists) {
  expect_same_everywhere("end_redshift=6 particles_per_side=24 gravity.mesh=48 gravity.reuse=3");
}

using LightConesOfSites = TwoPrograms;

const std::string kCones =
    " run.deterministic=true output.power_spectrum=false output.image=false end_redshift=4 'box.size=1000 Mpc/h'"
    " 'lightcone.observers=[0, 500, 999]' lightcone.opening_angle=40 'lightcone.edges=[4, 5, 7]' lightcone.nside=8";

TEST_F(LightConesOfSites, HoldWhatOneRankFinds) {
  expect_end(call("run one.toml run.output_directory=one" + kCones), 0);
  expect_end(call("run one.toml run.output_directory=ranks" + kCones, over_ranks(2)), 0);
  expect_end(both("run two.toml" + kCones, "run two.toml" + kCones, over_ranks(2)), 0);
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
  for (const std::string run : {"one", "ranks", "output/two/a", "output/two/b"})
    for (const auto& entry : fs::directory_iterator(path(run + "/lightcone_00")))
      EXPECT_NE(entry.path().extension(), ".spool") << entry.path() << ": there is no restart";
}

}  // namespace
}  // namespace maki::test
