#include "src/report/follower.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "kernels/error.hpp"
#include "src/io/run_directory.hpp"
#include "src/simulation/run_lines.hpp"

namespace maki::report {
namespace {

constexpr std::uint64_t kTail = 1 << 20;  // bytes that are read at first
constexpr std::size_t kStepsRemembered = 200;

}  // namespace

Follower::Follower(std::string directory) : directory_(std::move(directory)), path_(metrics_path(directory_)) {
  if (!std::filesystem::is_directory(directory_))
    throw Error(fmt::format("there is no directory '{}'", directory_), "", "give the output directory of a run");
}

// The first line, those with which the run went on, then the tail.
void Follower::start() {
  reader_ = {};
  read_ = 0;
  std::ifstream file(path_, std::ios::binary);
  std::string line;
  if (!std::getline(file, line) || file.eof()) return;
  reader_.line(line);
  read_ = line.size() + 1;
  const std::uint64_t size = std::filesystem::file_size(path_);
  if (size <= read_ + kTail) return;
  while (read_ + kTail < size && std::getline(file, line) && !file.eof()) {
    if (line.starts_with("{\"run\": ")) reader_.line(line);
    read_ += line.size() + 1;
  }
}

bool Follower::read_on() {
  struct stat status {};
  if (stat(path_.c_str(), &status) != 0) return false;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (read_ == 0 || size < read_ || status.st_ino != inode_) start();
  inode_ = status.st_ino;
  if (read_ == 0) return false;
  std::ifstream file(path_, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(read_));
  bool any = false;
  for (std::string line; std::getline(file, line); any = true) {
    if (file.eof()) break;
    reader_.line(line);
    read_ += line.size() + 1;
  }
  reader_.keep_last(kStepsRemembered);
  return any;
}

Signs Follower::signs() const {
  Signs signs;
  signs.now = static_cast<double>(std::time(nullptr));
  struct stat status {};
  if (stat(path_.c_str(), &status) == 0) signs.silent = std::max(0.0, signs.now - static_cast<double>(status.st_mtime));
  if (begun() && records().beginnings.back().host == host_name()) signs.gone = is_locked_here(directory_) == false;
  return signs;
}

}  // namespace maki::report
