// What runs leave in an output directory, and the lock on it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"

namespace maki {

// A name that no other run has, 32 hexadecimal digits. Collective; the same on all ranks.
std::string new_run_name(const Communicator& ranks = Communicator::self());

// Whether runs give this name to a file or folder: log, metrics, snapshots, spectra, pictures, films, groups, links,
// restarts, reports, and what a lost run had begun of them.
bool is_of_a_run(const std::string& name);

// Names of files and folders of runs in the directory, in order; none where it cannot be read.
std::vector<std::string> files_of_a_run(const std::string& directory);

// Removes all files of runs, the restarts first: after a failure no run can be resumed by mistake. Throws Error.
void remove_files_of_a_run(const std::string& directory);

// One run writes to an output directory at a time. Held while this lives, and gone with the process however that ends:
// nothing stays on the disk.
class DirectoryLock {
 public:
  // Throws Error where another run holds it. File systems that have no locks give none, and nobody is refused there.
  explicit DirectoryLock(const std::string& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int descriptor_;
};

// Whether a run on this machine holds the directory, without taking the lock; nothing where that cannot be known.
std::optional<bool> is_locked_here(const std::string& directory);

}  // namespace maki
