// Names of files in messages, and the folder that contains the files: nothing leads out of it.
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "wan/net/error.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan::copy {

// Names of files in messages: relative, with '/' between the parts, and nothing that could lead elsewhere.

inline constexpr std::size_t kMaxPath = 4000;  // bytes of a whole name
inline constexpr std::size_t kMaxPart = 255;   // of one part of a name

// A problem with one file or folder: it is reported, and the other files go on.
class FileProblem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// "cannot open 'a/b' (No such file or directory)"
[[noreturn]] void throw_problem(const std::string& what, std::string_view path, int error_number);

// Throws FileProblem unless `path` is relative, has no empty part, no "." or "..", no NUL, and no part with a name
// reserved for unfinished files.
void check_path(std::string_view path);

// A remote path as given by a user, as a checked relative one: leading, trailing and double slashes and "." are
// dropped, so "/" is "". Throws FileProblem for "..", and whatever check_path() refuses.
std::string relative_path(std::string_view given);

// The name of the unfinished file beside `name`: ".name.maki-part" (a checksum of the name if that would be too long).
std::string part_name(std::string_view name);
bool is_part_name(std::string_view name);

std::string_view parent_of(std::string_view path);  // "" for a name without a slash
std::string_view last_of(std::string_view path);
std::string join(std::string_view folder, std::string_view name);  // either may be empty

using Folder = std::shared_ptr<const Descriptor>;

struct CloseEntries {
  void operator()(DIR* entries) const { closedir(entries); }
};
using Entries = std::unique_ptr<DIR, CloseEntries>;  // of an open folder, for readdir()

// A folder that nothing leads out of: every name is opened below it, whatever symbolic links exist or are made
// concurrently. Thread-safe. Paths are relative and checked (check_path); "" is the root itself.
class Root {
 public:
  // kBest: openat2(RESOLVE_BENEATH), which follows links that stay inside; kByParts, where the kernel has no openat2:
  // follows no link.
  enum class Resolve { kBest, kByParts };

  // Throws Error where `folder` does not exist or is not a folder.
  explicit Root(const std::string& folder, Resolve resolve = Resolve::kBest);
  explicit Root(Folder folder, Resolve resolve = Resolve::kBest) : root_(std::move(folder)), resolve_(resolve) {}

  // All throw FileProblem.
  Folder folder(std::string_view path) const;        // kept open for the next call
  Folder make_folders(std::string_view path) const;  // with all its parents
  Descriptor open_folder(std::string_view path) const;
  Entries entries(std::string_view path) const;
  // Opens a regular file for reading. A link as the last part of the name is refused.
  Descriptor open_file(std::string_view path, struct stat& status) const;
  // Status of `path`, not following a link; false if it does not exist.
  bool look(std::string_view path, struct stat& status) const;

 private:
  Folder find_folder(std::string_view path) const;  // null if it does not exist
  int open_below(std::string_view path, int flags) const;
  int open_by_parts(const std::string& path, int flags) const;

  Folder root_;
  Resolve resolve_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Folder, std::less<>> known_;
};

}  // namespace maki::wan::copy
