// Restarts written in the background: a thread of each rank writes its file while the run goes on.
//
// Only the caller's thread calls HDF5 and MPI. begin() lets HDF5 make the file and reserves its space on the disk, so
// that a full disk is found at once and other writers do not run out of space later. The thread writes the numbers at
// the addresses that HDF5 allocated, flushes the file and renames it. In look() the ranks agree whether all threads
// have finished; then a thread of rank 0 writes complete.toml and removes the oldest restarts.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "host/comm/communicator.hpp"
#include "src/io/rank_threads.hpp"
#include "src/io/restart.hpp"

namespace maki {

// This rank's particles to write.
struct RestartRows {
  const ParticleRows& particles;
  const EscaperRows& escapers;
  std::shared_ptr<const void> owner = {};  // of both, kept until they are written
};

// The outcome of writing a restart.
struct RestartOutcome {
  std::uint64_t step = 0;
  std::string path;     // of the folder
  std::string problem;  // the message of an Error; empty: it is complete
  double seconds = 0;   // since begin()
};

// The result of a rank's thread: checksums of its file and of its plans.
struct RestartPart {
  std::string checksum, plans;
};

// Writes one restart at a time. All members are collective except busy() and the destructor. The destructor waits for
// this rank's thread; a restart not complete by then stays an incomplete folder.
class RestartWriter {
 public:
  explicit RestartWriter(const Communicator& ranks = Communicator::self()) : ranks_(ranks), threads_(ranks) {}

  // Begins a restart in `directory`, replacing one of the same step; once it is complete, the oldest complete ones are
  // removed until `keep` are left (`needed`: restart_folder::prune()). Reads the members of `info` that do not follow from
  // the files. May be called where busy() is false. `rows` must not change until the outcome is known. Throws Error, the
  // same on all ranks.
  void begin(const std::string& directory, const RestartInfo& info, const StateNumbers& numbers,
             const RestartRows& rows, int keep, std::uint64_t needed = 0);

  bool busy() const { return busy_; }  // begun, and its outcome not returned yet; the same on all ranks
  // The outcome, once and as soon as there is one. Does not wait.
  std::optional<RestartOutcome> look();
  // Waits for the outcome. May be called where busy() is true.
  RestartOutcome wait();

 private:
  struct Folder;
  std::optional<RestartOutcome> advance();
  RestartOutcome conclude(const std::string& problem);

  Communicator ranks_;
  std::shared_ptr<Folder> folder_;  // of the restart under way
  bool busy_ = false, completing_ = false;
  std::chrono::steady_clock::time_point begun_;
  std::shared_ptr<RestartPart> part_;  // of this rank's thread
  RankThreads threads_;
};

}  // namespace maki
