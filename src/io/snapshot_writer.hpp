// Snapshots in HDF5 written beside the computing, as restarts are (rank_threads.hpp): HDF5 makes the file in the main thread
// and sets its room aside, a thread of each rank writes its numbers to their addresses and flushes them, and a thread of
// rank 0 gives the files their names.
//
// The addresses of filtered chunks are HDF5's choice when it has them. Threads filter them and keep them in memory, and the
// main threads hand them over to HDF5, some each time that look() is called.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/io/rank_threads.hpp"
#include "src/io/snapshot.hpp"
#include "src/io/snapshot_io.hpp"

namespace maki {

// A rank's share of a set on its way into a snapshot.
struct SnapshotToWrite {
  std::shared_ptr<const ParticleSource> particles;
  std::vector<ExtraDataset> extras = {};
  std::vector<bool> in_groups = {};  // of each particle, where options.selection asks
};

struct SnapshotOutcome {
  std::vector<std::string> files;
  std::string problem;  // the message of an Error; empty: the files are complete
  double seconds = 0;   // since begin()
};

// One snapshot is under way at a time. All members are collective but busy() and the destructor, which waits for this
// rank's thread: what is not complete by then is removed.
class SnapshotWriter {
 public:
  explicit SnapshotWriter(const RunPlace& writers = {});
  ~SnapshotWriter();

  // Begins a snapshot; formats, options and files are those of write_snapshot(). May be called where busy() is false.
  // Throws Error, the same on all ranks, and then leaves nothing behind. Returns the names that the files will have.
  std::vector<std::string> begin(const std::string& path, SnapshotToWrite set, const Provenance& provenance,
                                 const WriteOptions& options);

  bool busy() const { return job_ != nullptr; }  // begun, and its outcome not told yet; the same on all ranks
  // The outcome, once and as soon as there is one: takes no longer than HDF5 does for a few chunks.
  std::optional<SnapshotOutcome> look();
  // Waits for the outcome. May be called where busy() is true.
  SnapshotOutcome wait();

 private:
  struct Job;
  std::optional<SnapshotOutcome> advance();
  SnapshotOutcome conclude(const std::string& problem);

  RunPlace writers_;
  std::chrono::steady_clock::time_point begun_;
  std::unique_ptr<Job> job_;  // of the snapshot under way
  RankThreads threads_;       // goes before the job does
};

// Bytes of a particle in a snapshot's file without deflate, in a periodic box.
double snapshot_bytes(const WriteOptions& options);
// Bytes of a particle that a SnapshotWriter takes beside the source, while it writes.
double snapshot_writer_bytes(const WriteOptions& options);

}  // namespace maki
