// Files of runs in an output directory, and the lock on it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"

namespace maki {

// A name that no other run has, 32 hexadecimal digits. Collective; the same on all ranks.
std::string new_run_name(const Communicator& ranks = Communicator::self());

// Whether a run may have made a file or folder of this name: log, metrics, snapshots, spectra, pictures, films, groups,
// links, restarts, light cones, reports, and unfinished ones of a lost run.
bool is_of_a_run(const std::string& name);

// The command that resumes the run in this directory, for a shell.
std::string resume_command(const std::string& directory, const std::string& site = "");

// Sorted names of files and folders of runs in the directory; none where it is missing. Throws Error where it cannot be
// read.
std::vector<std::string> files_of_a_run(const std::string& directory);

// Remove the restarts of runs, or all files of runs. Restarts are removed first, so that after a failure no run can be
// resumed by mistake; metrics.jsonl, which may note that the run was to be overwritten, is removed last. Throw Error.
void remove_restarts(const std::string& directory);
void remove_files_of_a_run(const std::string& directory);

// Removes unfinished files of a lost run, of its light cones too; those that cannot be removed stay.
void remove_begun_files(const std::string& directory);

// The name of this machine; "" where it is unknown.
std::string host_name();

// Lets one run at a time write to an output directory, also from other machines where the file system passes locks on
// (NFS). The lock ends with this object, or with the process however it ends; a killed one leaves .maki.lock, with the
// process and machine that held it.
class DirectoryLock {
 public:
  // Throws Error where another run holds it. On file systems without locks every run is admitted.
  explicit DirectoryLock(const std::string& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  // Whether the directory's name still leads to the lock: not where the directory or the lock file was renamed or
  // removed.
  bool holds() const;
  // The directory of the lock by its present name; "" where the lock file was removed.
  std::string place() const;
  // Locks what has the directory's name now. Throws Error where another run holds it.
  void take_again();
  // Makes the lock file young, for those who remove old files.
  void touch() const;

 private:
  void take();
  void sign() const;
  void let_go();

  std::string directory_, name_;
  int descriptor_ = -1;
  int process_;  // a forked one does not hold it
};

// Whether a run holds the directory, without taking the lock; none where that cannot be known, as without the lock file
// (a killed run leaves it). On file systems whose locks are those of one machine, runs on others are not seen.
std::optional<bool> is_locked(const std::string& directory);

}  // namespace maki
