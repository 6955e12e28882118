// Restarts written beside the computing: a thread of each rank writes its file, while the run goes on.
//
// All calls of HDF5 and MPI are made by the caller's thread. begin() lets HDF5 make the file and sets its room on the
// disk aside, so that a full disk is found at once and nobody who writes meanwhile loses room to it. The thread writes
// the numbers to the addresses that the library gave, flushes the file and names it. look() agrees over the ranks on
// who has done: once all have, a thread of rank 0 writes complete.toml and removes the oldest restarts.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "host/comm/communicator.hpp"
#include "src/io/rank_threads.hpp"
#include "src/io/restart.hpp"

namespace maki {

// This rank's particles, to be written.
struct RestartRows {
  const ParticleRows& particles;
  const EscaperRows& escapers;
  std::shared_ptr<const void> owner = {};  // of both, held until they are written
};

// What became of a restart.
struct RestartOutcome {
  std::uint64_t step = 0;
  std::string path;     // of the folder
  std::string problem;  // the message of an Error; empty: it is complete
  double seconds = 0;   // since begin()
};

// What a rank's thread has made: checksums of its file and of its plans.
struct RestartPart {
  std::string checksum, plans;
};

// One restart is under way at a time. All members are collective but busy() and the destructor, which waits for this
// rank's thread: what is not complete by then stays an incomplete folder.
class RestartWriter {
 public:
  explicit RestartWriter(const Communicator& ranks = Communicator::self()) : ranks_(ranks), threads_(ranks) {}

  // Begins a restart in `directory`, in place of one of the same step; once it is complete, the oldest complete ones are
  // removed until `keep` are left (`needed`: restart_folder::prune()). Of `info` all is read that files do not tell. May be called where busy() is false.
  // `rows` must not change until the outcome is known. Throws Error, the same on all ranks.
  void begin(const std::string& directory, const RestartInfo& info, const StateNumbers& numbers,
             const RestartRows& rows, int keep, std::uint64_t needed = 0);

  bool busy() const { return busy_; }  // begun, and its outcome not told yet; the same on all ranks
  // The outcome, once and as soon as there is one: returns at once.
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
