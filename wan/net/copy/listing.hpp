// What there is to send, found as it is asked for: of the folder at each depth a few names are held in memory.
#pragma once

#include <dirent.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "wan/net/copy/message.hpp"
#include "wan/net/copy/report.hpp"
#include "wan/net/copy/root.hpp"

namespace maki::wan::copy {

// A file, or a folder with all that is in it.
struct Source {
  std::shared_ptr<const Root> root;
  std::string path;     // below the root; "" for the root itself
  std::string name;     // what the receiver calls it; "" for the contents of a folder, without the folder itself
  bool folder = false;  // for certain, or by a link that stays below the root
};

// `given` as on a command line: a file or folder of this machine. A folder with a slash at its end (or ".") stands for
// its contents. Throws Error where it is not there.
Source local_source(const std::string& given);
// The same of a served root, where `given` counts from the root. Throws FileProblem.
Source served_source(const std::shared_ptr<const Root>& root, const std::string& given);

struct Listed {
  Entry entry;
  std::shared_ptr<const Root> root;
  std::string path;  // below its root
};

class Listing {
 public:
  // What cannot be listed (symbolic links, special files, folders that cannot be read) is told to `notes`.
  Listing(std::vector<Source> sources, Notes& notes);
  ~Listing();
  // The next entries, at most so many, and bytes when encoded; none at the end.
  std::vector<Listed> next(std::size_t most, std::size_t bytes);
  bool sole_file() const { return sole_file_; }

 private:
  struct Close {
    void operator()(DIR* stream) const { closedir(stream); }
  };
  struct Level {  // a folder that is being listed
    std::unique_ptr<DIR, Close> stream;
    std::string path, name;          // below its root, and as the receiver calls it
    std::vector<std::string> names;  // the next ones, last first
  };
  static void read_names(Level& level);
  std::optional<Listed> begin(const Source& source);
  std::optional<Listed> step();
  std::optional<Listed> take(const std::shared_ptr<const Root>& root, const std::string& path, const std::string& name,
                             const struct stat& status);
  void enter(const std::string& path, const std::string& name);

  std::vector<Source> sources_;
  Notes& notes_;
  bool sole_file_ = false;
  std::size_t source_ = 0;  // the next one
  std::shared_ptr<const Root> root_;
  std::vector<Level> levels_;
  std::optional<Listed> held_;  // did not fit
};

}  // namespace maki::wan::copy
