// Two sites, each a program of its own, on this machine.
#pragma once

#include <future>

#include "tests/src/cli/program_fixture.hpp"
#include "tests/wan/ports.hpp"

namespace maki::test {

// Of site a and of site b.
using Results = std::array<Result, 2>;

// Both have ended with this code and said these words.
inline void expect_end(const Results& results, int code, const std::vector<std::string>& words = {}) {
  for (const Result& result : results) expect_end(result, code, words);
}

class TwoPrograms : public Program {
 protected:
  TwoPrograms() {
    const auto ports = wan::test::free_ports(2);
    const auto address = [&](std::size_t i) { return "'127.0.0.1:" + std::to_string(ports[i]) + "'\n"; };
    const std::string sites = "[sites]\nring = ['a', 'b']\nkey = '" + path("our.key") +
                              "'\n[sites.a]\naddress = " + address(0) + "[sites.b]\naddress = " + address(1) +
                              "[sites.path]\nstreams = 2\npatience = '60 s'\n";
    const std::string box =
        "[run]\nname = 'two'\n[box]\nsize = '50 Mpc/h'\n"
        "[initial]\nparticles_per_side = 16\nredshift = 9\n"
        "[gravity]\nmesh = 32\n[time]\nend_redshift = 8\n"
        "[output]\nredshifts = []\nimage_pixels = 64\npower_mesh = 32\n";
    write("two.toml", box + sites);
    write("one.toml", box);
    const std::string sphere =
        "[run]\nname = 'sphere'\nkind = 'isolated'\n"
        "[initial]\nkind = 'plummer'\nparticles = 1000\n"
        "[gravity]\nsoftening = 0.05\n[time]\nend_time = 1.5\n"
        "[output]\ntimes = [0.5]\nimage_pixels = 64\n";
    write("sphere.toml", sphere + sites);
    write("sphere_at_one.toml", sphere);
    for (const char* key : {"our.key", "other.key"}) EXPECT_EQ(test::call("wan keygen " + path(key)).code, 0);
  }
  std::string config() const { return path("two.toml"); }

  // A time limit on each: sites that wait for each other for ever fail the test instead of hanging it.
  Result call(const std::string& arguments, const std::string& with = program()) const {
    return call_shell("cd " + directory_.string() + " && OMP_NUM_THREADS=1 timeout -k 5 300 " + with + " " + arguments);
  }
  Results both(const std::string& at_a, const std::string& at_b, const std::string& program_b = program()) const {
    auto a = std::async(std::launch::async, [&] { return call(at_a + " --site a"); });
    const Result b = call(at_b + " --site b", program_b);
    return {a.get(), b};
  }

  Results both(const std::string& at_each) const { return both(at_each, at_each); }

  // The program under a launcher.
  static std::string over_ranks(int ranks) { return launcher(ranks) + program(); }
  // The files that sites a and b have left in two directories, beside each other in one; the name of the first.
  std::string collect(const std::string& base, const std::string& at_a, const std::string& at_b) const {
    for (const auto& [directory, part] : {std::pair{at_a, ".0.hdf5"}, {at_b, ".1.hdf5"}})
      fs::copy(path(directory + "/" + base + part), path(base + part), fs::copy_options::overwrite_existing);
    return path(base + ".0.hdf5");
  }
  std::string collect(const std::string& base) const { return collect(base, "output/two/a", "output/two/b"); }
};

}  // namespace maki::test
