#include "src/io/run_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <regex>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "src/io/restart_folder.hpp"

namespace maki {

namespace fs = std::filesystem;

std::string new_run_name(const Communicator& ranks) {
  std::random_device random;
  std::string name;
  for (int word = 0; word < 4; ++word) name += fmt::format("{:08x}", static_cast<std::uint32_t>(random()));
  return broadcast_text(ranks, name);
}

namespace {

// The name of the file that a lost run had begun under this name; none where it is no such name.
std::optional<std::string> begun_file(const std::string& name) {
  static const std::regex begun(R"(\.(.+)\.\d+\.\d+\.partial)");  // safe_file.hpp
  std::smatch match;
  if (!std::regex_match(name, match, begun)) return {};
  return match[1].str();
}

}  // namespace

bool is_of_a_run(const std::string& name) {
  // sites_trace.csv: of versions before metrics.jsonl had all of it.
  static const std::regex known(
      R"((log\.txt|metrics\.jsonl|report\.html|sites_trace\.csv|sites_report\.txt|(snapshot_\d{3,}|stopped)(\.\d+)?\.hdf5)"
      R"(|power_\d{3,}\.txt|groups_\d{3,}(\.hdf5|_mass_function\.txt)|links_\d{3,}\.hdf5|image_\d{3,}\.png)"
      R"(|film_\d{5,}\.png|restart_\d{6,}|lightcone_\d{2,}))");
  return std::regex_match(begun_file(name).value_or(name), known);
}

std::string resume_command(const std::string& directory) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) || c >= 0x80 || std::strchr("_-+=./:,@%", c); };
  if (!directory.empty() && std::ranges::all_of(directory, plain)) return "maki resume " + directory;
  std::string quoted;
  for (const char c : directory) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "maki resume '" + quoted + "'";
}

std::vector<std::string> files_of_a_run(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored))
    if (std::string name = entry.path().filename().string(); is_of_a_run(name)) names.push_back(std::move(name));
  std::sort(names.begin(), names.end());
  return names;
}

void remove_files_of_a_run(const std::string& directory) {
  std::vector<std::string> names = files_of_a_run(directory);
  const auto is_restart = [](const std::string& name) { return restart_folder::step_of(name) >= 0; };
  std::stable_partition(names.begin(), names.end(), is_restart);
  for (const std::string& name : names) {
    const std::string path = (fs::path(directory) / name).string();
    if (is_restart(name)) restart_folder::remove(path);
    std::error_code error;
    fs::remove_all(path, error);
    if (error)
      throw Error(fmt::format("cannot remove '{}', which an earlier run has left", path), error.message(),
                  "remove it, or choose another run.output_directory");
  }
}

void remove_begun_files(const std::string& directory) {
  std::error_code ignored;
  for (const std::string& name : files_of_a_run(directory)) {
    const fs::path path = fs::path(directory) / name;
    if (begun_file(name)) fs::remove(path, ignored);
    if (!name.starts_with("lightcone_")) continue;
    for (fs::directory_iterator entry(path, ignored); entry != fs::directory_iterator(); entry.increment(ignored))
      if (begun_file(entry->path().filename().string())) fs::remove(entry->path(), ignored);
  }
}

DirectoryLock::DirectoryLock(const std::string& directory)
    : descriptor_(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0 || flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  close(descriptor_);
  throw Error("the output directory " + directory + " is in use", "another run is writing to it",
              "wait for its end or stop it, or choose another directory (run.output_directory)");
}

std::optional<bool> is_locked_here(const std::string& directory) {
  struct stat status {};
  std::ifstream locks("/proc/locks");  // "1: FLOCK  ADVISORY  WRITE 2245 fe:01:1443 0 EOF", the device in hexadecimal
  if (!locks || stat(directory.c_str(), &status) != 0) return {};
  // By inode only: with subvolumes stat() returns another device.
  const std::string file = fmt::format(":{} ", status.st_ino);
  for (std::string line; std::getline(locks, line);)
    if (line.find("FLOCK") != line.npos && line.find("WRITE") != line.npos && line.find(file) != line.npos) return true;
  return false;
}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace maki
