// A folder that nothing leads out of: every name is opened below it, whatever symbolic links there are or are put there
// meanwhile.
#pragma once

#include <sys/stat.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "wan/net/copy/names.hpp"

namespace maki::wan::copy {

// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  int number() const { return number_; }
  bool open() const { return number_ >= 0; }
  void close();
  void release() { number_ = -1; }  // someone else closes it

 private:
  int number_ = -1;
};

using Folder = std::shared_ptr<const Descriptor>;

// Any thread. Paths are relative and checked (check_path); "" is the root itself.
class Root {
 public:
  // By openat2(RESOLVE_BENEATH), where links that stay inside are followed; by parts where the kernel has no openat2,
  // and then no link is.
  enum class Resolve { kBest, kByParts };

  // Throws Error where `folder` is not there or not a folder.
  explicit Root(const std::string& folder, Resolve resolve = Resolve::kBest);
  explicit Root(Folder folder, Resolve resolve = Resolve::kBest) : root_(std::move(folder)), resolve_(resolve) {}

  // All throw FileProblem.
  Folder folder(std::string_view path) const;           // kept open for the next time
  Folder make_folders(std::string_view path) const;     // with all above it
  Descriptor open_folder(std::string_view path) const;  // for listing
  // A regular file, to be read. A link as the last part of the name is refused.
  Descriptor open_file(std::string_view path, struct stat& status) const;
  // What is there, without following a link; false for nothing.
  bool look(std::string_view path, struct stat& status) const;

 private:
  Folder find_folder(std::string_view path) const;  // null where it is not there
  int open_below(std::string_view path, int flags) const;
  int open_by_parts(const std::string& path, int flags) const;
  Folder keep(std::string_view path, int descriptor) const;

  Folder root_;
  Resolve resolve_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Folder, std::less<>> known_;
};

}  // namespace maki::wan::copy
