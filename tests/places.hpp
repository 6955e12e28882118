// Where tests find what is not in their program: beside it (a build directory in the source tree, a bundle), else where
// it was when they were compiled; and what is in files.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace maki::test {

inline std::filesystem::path directory_of_this_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

// The program `maki`.
inline std::string program() {
  const auto beside = directory_of_this_program() / "maki";
  return std::filesystem::exists(beside) ? beside.string() : std::string(MAKI_BINARY);
}

// The directory of configs/ and, except in a bundle, of the sources.
inline std::string source_directory() {
  const auto above = directory_of_this_program().parent_path();
  return std::filesystem::exists(above / "configs") ? above.string() : std::string(MAKI_SOURCE_DIR);
}

// All of a file; empty where it cannot be read.
inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// What comes before a program that `ranks` ranks are to run: one beside this program where there is one (a bundle, or
// an MPI that is not the one on PATH).
inline std::string launcher(int ranks) {
  const auto bundled = directory_of_this_program() / "mpirun";
  return (std::filesystem::exists(bundled) ? bundled.string() : "mpirun") +
         (geteuid() == 0 ? " --allow-run-as-root" : "") + " --oversubscribe --bind-to none -n " +
         std::to_string(ranks) + " ";
}

}  // namespace maki::test
