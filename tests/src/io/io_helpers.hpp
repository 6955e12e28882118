// A scratch directory, a small snapshot, and calls in a child process.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "src/io/snapshot.hpp"
#include "tests/messages.hpp"

namespace maki::test {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "maki_io_XXXXXX").string();
    if (mkdtemp(pattern.data())) path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_;
};

// n particles on a twisted line through the box, all different, with the mean density that Omega0 asks for.
inline Snapshot make_snapshot(std::size_t n = 1000, bool equal_masses = true) {
  Snapshot s;
  s.header.time = 0.25;
  s.header.redshift = 3;
  s.header.box_size = 50;
  s.header.omega0 = 0.308;
  s.header.omega_lambda = 0.692;
  s.header.omega_baryon = 0.0482;
  s.header.hubble = 0.678;
  const double mass = 0.308 * 27.7536627 * 125000.0 / static_cast<double>(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double t = (static_cast<double>(i) + 0.5) / static_cast<double>(n);
    s.positions.push_back({50 * t, 50 * std::fmod(17.3 * t, 1.0), 50 * std::fmod(5.7 * t + 0.1, 1.0)});
    s.velocities.push_back({static_cast<float>(300 * t), static_cast<float>(-120 * t), static_cast<float>(7 + t)});
    s.masses.push_back(static_cast<float>(equal_masses ? mass : mass * (0.5 + t)));
    s.ids.push_back(7 + 3 * i);
  }
  return s;
}

inline Provenance make_provenance() {
  return {"[box]\nsize = \"50 Mpc/h\"\n", "Maki 0.1.0", "0123456789ab", "g++ 12.2.0", "CPU, 2 threads"};
}

// Runs `call`, which returns a text, in a child process that may spoil its rights and limits; gives the text back.
// The child leaves through exit(), so that exit handlers run; "died" where it crashed.
template <class Call>
std::string in_child(Call call) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  std::fflush(nullptr);  // the child would print what waits here once more
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = call();
    const ssize_t written = ::write(ends[1], text.data(), text.size());
    std::exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? text : text + " died";
}

}  // namespace maki::test
