#include "src/io/run_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <regex>
#include <utility>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "src/io/restart.hpp"
#include "src/io/safe_file.hpp"

namespace maki {

namespace fs = std::filesystem;

std::string new_run_name(const Communicator& ranks) {
  std::random_device random;
  std::string name;
  for (int word = 0; word < 4; ++word) name += fmt::format("{:08x}", static_cast<std::uint32_t>(random()));
  return broadcast_text(ranks, name);
}

namespace {

// The final name of a lost run's unfinished file with this temporary name; none for other names.
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

std::string resume_command(const std::string& directory, const std::string& site) {
  const std::string here = site.empty() ? "" : " --site " + site;
  const auto plain = [](unsigned char c) { return std::isalnum(c) || c >= 0x80 || std::strchr("_-+=./:,@%", c); };
  if (!directory.empty() && std::ranges::all_of(directory, plain)) return "maki resume " + directory + here;
  std::string quoted;
  for (const char c : directory) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "maki resume '" + quoted + "'" + here;
}

std::vector<std::string> files_of_a_run(const std::string& directory) {
  std::vector<std::string> names;
  std::ranges::copy_if(names_in(directory), std::back_inserter(names), is_of_a_run);
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

void remove_left(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error)
    throw Error(fmt::format("cannot remove '{}', which an earlier run has left", path.string()), error.message(),
                "remove it, or choose another run.output_directory");
}

}  // namespace

void remove_restarts(const std::string& directory) {
  for (const std::string& name : files_of_a_run(directory)) {
    if (restart_folder::step_of(name) < 0) continue;
    const fs::path path = fs::path(directory) / name;
    restart_folder::remove(path.string());
    remove_left(path);
  }
}

void remove_files_of_a_run(const std::string& directory) {
  remove_restarts(directory);
  std::vector<std::string> names = files_of_a_run(directory);
  std::ranges::stable_partition(names, [](const std::string& name) { return name != "metrics.jsonl"; });
  for (const std::string& name : names) remove_left(fs::path(directory) / name);
}

void remove_begun_files(const std::string& directory) {
  std::error_code ignored;
  for (const std::string& name : files_of_a_run(directory)) {
    const fs::path path = fs::path(directory) / name;
    if (begun_file(name)) fs::remove(path, ignored);
    if (!name.starts_with("lightcone_")) continue;
    for (const std::string& of_cone : names_in(path.string()))
      if (begun_file(of_cone)) fs::remove(path / of_cone, ignored);
  }
}

namespace {

std::string lock_file(const std::string& directory) { return (fs::path(directory) / ".maki.lock").string(); }

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

// Locks of open files, which NFS passes on to other machines, unlike those of directories.
enum class Taken { kYes, kByAnother, kNoLocks };
Taken take_lock(int descriptor) {
  struct flock lock = whole_file();
  if (fcntl(descriptor, F_OFD_SETLK, &lock) == 0) return Taken::kYes;
  return errno == EAGAIN || errno == EACCES ? Taken::kByAnother : Taken::kNoLocks;
}

std::string first_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

DirectoryLock::DirectoryLock(const std::string& directory)
    : directory_(directory), name_(lock_file(directory)), process_(getpid()) {
  take();
}

void DirectoryLock::take() {
  Taken taken = Taken::kNoLocks;
  do {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) break;
    taken = take_lock(descriptor_);
  } while (taken == Taken::kYes && !leads_to(name_, descriptor_));  // the run that held it before removes the name
  // The file may be another user's, who lets others write into the directory.
  if (taken == Taken::kYes) return sign();
  if (taken == Taken::kNoLocks && is_locked(directory_) != true) return;
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  const std::string holder = first_line_of(name_);
  throw Error("the output directory " + directory_ + " is in use",
              "another run is writing to it" + (holder.empty() ? "" : " (" + holder + ")"),
              "wait for its end or stop it, or choose another directory (run.output_directory); where it has died with "
              "its machine, remove " +
                  name_);
}

// Names the holder in the file, for messages to others; without room there the lock holds as well.
void DirectoryLock::sign() const {
  const std::string holder = fmt::format("process {} on {}\n", process_, host_name());
  if (ftruncate(descriptor_, 0) == 0) (void)!pwrite(descriptor_, holder.data(), holder.size(), 0);
}

DirectoryLock::~DirectoryLock() { let_go(); }

void DirectoryLock::let_go() {
  if (descriptor_ < 0) return;
  if (process_ == getpid() && leads_to(name_, descriptor_))
    unlink(name_.c_str());  // still locked: nobody else can have taken it over
  close(std::exchange(descriptor_, -1));
}

bool DirectoryLock::holds() const { return descriptor_ < 0 || leads_to(name_, descriptor_); }

std::string DirectoryLock::place() const {
  std::error_code none;
  const fs::path now = fs::read_symlink(fmt::format("/proc/self/fd/{}", descriptor_), none);
  return !none && leads_to(now.string(), descriptor_) ? now.parent_path().string() : "";
}

void DirectoryLock::take_again() {
  let_go();
  take();
}

void DirectoryLock::touch() const { (void)futimens(descriptor_, nullptr); }

std::optional<bool> is_locked(const std::string& directory) {
  const int descriptor = open(lock_file(directory).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  struct flock lock = whole_file();
  const bool known = fcntl(descriptor, F_OFD_GETLK, &lock) == 0;
  close(descriptor);
  return known ? std::optional<bool>(lock.l_type != F_UNLCK) : std::nullopt;
}

}  // namespace maki
