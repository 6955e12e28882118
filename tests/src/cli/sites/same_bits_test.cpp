// Deterministic runs of a periodic box: the same snapshots, bit for bit, on one rank, on several and at two sites.
#include <array>
#include <cmath>
#include <map>
#include <sstream>

#include "src/io/snapshot_io.hpp"
#include "tests/src/cli/sites/two_programs.hpp"

namespace maki::test {
namespace {

struct Particle {
  std::array<double, 3> position;
  std::array<float, 3> velocity;
  float mass;
  bool operator==(const Particle&) const = default;
};
using ById = std::map<std::uint64_t, Particle>;

class SameBits : public TwoPrograms {
 protected:
  static ById particles(const std::string& file) {
    const Snapshot set = read_snapshot(file);
    ById found;
    for (std::size_t i = 0; i < set.size(); ++i)
      found[set.ids[i]] = {set.positions[i], set.velocities[i], set.masses[i]};
    EXPECT_EQ(found.size(), set.size());
    return found;
  }
  // The numbers of a table, row after row.
  static std::vector<double> numbers(const std::string& file) {
    std::ifstream in(file);
    std::vector<double> found;
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with('#')) continue;
      std::istringstream row(line);
      for (double value; row >> value;) found.push_back(value);
    }
    return found;
  }
  void expect_same_power(const std::string& file) const {
    const std::vector<double> found = numbers(path(file)), expected = numbers(path("one/power_001.txt"));
    ASSERT_GT(expected.size(), 50u);
    ASSERT_EQ(found.size(), expected.size()) << file;
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 1e-6 * std::abs(expected[i])) << file << " number " << i;
  }
  static void expect_same(const ById& found, const ById& expected, const std::string& where) {
    ASSERT_EQ(found.size(), expected.size()) << where;
    std::size_t others = 0;
    for (const auto& [id, particle] : expected) others += found.contains(id) && found.at(id) == particle ? 0 : 1;
    EXPECT_EQ(others, 0u) << where << ": particles that are not the same";
  }
  void expect_same_everywhere(const std::string& settings) const {
    const std::string all =
        " run.deterministic=true output.redshifts=[7]"
        " output.image=false " +
        settings;
    const auto at_one = [&](const std::string& with, const std::string& directory) {
      const CallResult result = call("run one.toml run.output_directory=" + directory + all, with);
      EXPECT_EQ(result.code, 0) << result.output;
    };
    at_one(program(), "one");
    at_one(over_ranks(2), "ranks");
    // Site b has two ranks.
    for (const CallResult& result : both("run two.toml" + all, "run two.toml" + all, over_ranks(2)))
      ASSERT_EQ(result.code, 0) << result.output;
    for (const std::string base : {"snapshot_000", "snapshot_001"}) {
      const ById one = particles(path("one/" + base + ".hdf5"));
      expect_same(particles(path("ranks/" + base + ".hdf5")), one, base + " of two ranks");
      expect_same(particles(collect(base)), one, base + " of two sites");
    }
    for (const std::string directory : {"ranks", "output/two/a", "output/two/b"})
      expect_same_power(directory + "/power_001.txt");
  }
};

TEST_F(SameBits, OnOneRankOnSeveralAndAtTwoSites) { expect_same_everywhere("end_redshift=4"); }

TEST_F(SameBits, OfMoreParticlesWithOtherLists) {
  expect_same_everywhere("end_redshift=6 particles_per_side=24 gravity.mesh=48 gravity.reuse=3");
}

}  // namespace
}  // namespace maki::test
