// A small file system for tests of full disks, which root alone can mount; and files that may not grow.
#pragma once

#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace maki::test {

// Mounted at a directory, which is made where it is missing, as long as it lives; false where that is not permitted.
class SmallDisk {
 public:
  explicit SmallDisk(std::string place, int megabytes = 1) : place_(std::move(place)) {
    std::filesystem::create_directories(place_);
    there_ = mount("maki", place_.c_str(), "tmpfs", 0, size(megabytes).c_str()) == 0;
  }
  ~SmallDisk() {
    if (there_) umount2(place_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  explicit operator bool() const { return there_; }

  bool resize(int megabytes) const {
    return mount("maki", place_.c_str(), "tmpfs", MS_REMOUNT, size(megabytes).c_str()) == 0;
  }
  // Leaves no room at all, until clear().
  void fill() const {
    const std::uintmax_t free = std::filesystem::space(place_).available;
    if (free > 0) std::ofstream(filler(), std::ios::app) << std::string(free, 'x');
  }
  void clear() const { std::filesystem::remove(filler()); }

 private:
  static std::string size(int megabytes) { return "size=" + std::to_string(megabytes) + "m"; }
  std::string filler() const { return place_ + "/filler"; }

  std::string place_;
  bool there_ = false;
};

// While it lives, files of this process may have no more than `bytes` where it `limits` them.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes, bool limits) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    if (limits) setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace maki::test
