// Two sites, each a program of its own, on this machine.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "tests/places.hpp"
#include "tests/src/cli/program_fixture.hpp"

namespace maki::test {

// Ports that nobody has at this moment.
template <std::size_t count>
std::array<int, count> free_ports() {
  std::array<int, count> sockets, ports;
  for (std::size_t i = 0; i < count; ++i) {
    sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(sockets[i], reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(sockets[i], reinterpret_cast<sockaddr*>(&address), &size), 0);
    ports[i] = ntohs(address.sin_port);
  }
  for (const int one : sockets) close(one);
  return ports;
}

class TwoPrograms : public testing::Test {
 protected:
  // Of site a and of site b.
  using Results = std::array<CallResult, 2>;

  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / ("maki_two_programs_" + std::to_string(getpid()));
    std::filesystem::create_directories(directory_);
    const auto ports = free_ports<2>();
    const auto address = [&](std::size_t i) { return "'127.0.0.1:" + std::to_string(ports[i]) + "'\n"; };
    const std::string sites = "[sites]\nring = ['a', 'b']\nkey = '" + path("our.key") +
                              "'\n[sites.a]\naddress = " + address(0) + "[sites.b]\naddress = " + address(1) +
                              "[sites.path]\nstreams = 2\npatience = '20 s'\n";
    const std::string box =
        "[run]\nname = 'two'\n[box]\nsize = '50 Mpc/h'\n"
        "[initial]\nparticles_per_side = 16\nredshift = 9\n"
        "[gravity]\nmesh = 32\n[time]\nend_redshift = 8\n"
        "[output]\nredshifts = []\nimage_pixels = 64\npower_mesh = 32\n";
    std::ofstream(path("two.toml")) << box << sites;
    std::ofstream(path("one.toml")) << box;
    const std::string sphere =
        "[run]\nname = 'sphere'\nkind = 'isolated'\n"
        "[initial]\nkind = 'plummer'\nparticles = 1000\n"
        "[gravity]\nsoftening = 0.05\n[time]\nend_time = 1.5\n"
        "[output]\ntimes = [0.5]\nimage_pixels = 64\n";
    std::ofstream(path("sphere.toml")) << sphere << sites;
    std::ofstream(path("sphere_at_one.toml")) << sphere;
    for (const char* key : {"our.key", "other.key"})
      ASSERT_EQ(call_shell(program() + " wan keygen " + path(key)).code, 0);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  std::string config() const { return path("two.toml"); }

  // A time limit on each: sites that wait for each other for ever fail the test instead of hanging it.
  CallResult call(const std::string& arguments, const std::string& with = program()) const {
    return call_shell("cd " + directory_.string() + " && OMP_NUM_THREADS=1 timeout -k 5 100 " + with + " " + arguments);
  }
  Results both(const std::string& at_a, const std::string& at_b, const std::string& program_b = program()) const {
    auto a = std::async(std::launch::async, [&] { return call(at_a + " --site a"); });
    const CallResult b = call(at_b + " --site b", program_b);
    return {a.get(), b};
  }

  // The program under a launcher.
  static std::string over_ranks(int ranks) { return launcher(ranks) + program(); }
  // The files that both sites have left in output/two, beside each other in one directory; the name of the first.
  std::string collect(const std::string& base) const {
    for (const int i : {0, 1}) {
      const std::string name = base + "." + std::to_string(i) + ".hdf5";
      std::filesystem::copy(path(std::string("output/two/") + (i == 0 ? "a/" : "b/") + name), path(name),
                            std::filesystem::copy_options::overwrite_existing);
    }
    return path(base + ".0.hdf5");
  }

  static void expect_words(const CallResult& result, const std::vector<std::string>& words) {
    for (const std::string& word : words)
      EXPECT_NE(result.output.find(word), std::string::npos) << "'" << word << "' is missing in:\n" << result.output;
  }

  std::filesystem::path directory_;
};

}  // namespace maki::test
