// HDF5 snapshots written in the background, as restarts are (rank_threads.hpp): HDF5 makes the file in the main thread
// and allocates its space, a thread of each rank writes the rank's numbers at their addresses and flushes them, and a
// thread of rank 0 renames the files.
//
// HDF5 chooses the addresses of filtered chunks when it gets them. Threads filter chunks into memory, and the main
// threads pass them to HDF5, some in each call of look().
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

// Numbers of a file over those of a set.
struct FileFactors {
  double length = 1, mass = 1, velocity = 1;
};
// Sets units, box and redshift of a set's header to those of files in a layout. GADGET's comoving sets have lengths and
// masses over h, and velocities over the root of a; SWIFT's layout has neither.
FileFactors set_file_units(SnapshotHeader& header, FileLayout layout);

// A rank's share of a set for a snapshot.
struct SnapshotToWrite {
  std::shared_ptr<const ParticleSource> particles;
  std::vector<ExtraDataset> extras = {};
  std::vector<bool> in_groups = {};  // of each particle, where options.selection asks
};

struct SnapshotOutcome {
  std::vector<std::string> files;
  std::string problem;  // the message of an Error; empty: the files are complete
  double seconds = 0;   // of work (RankThreads::take_seconds)
};

// Writes one snapshot at a time. All members are collective except busy() and the destructor. The destructor waits for
// this rank's thread; a snapshot not complete by then is removed.
class SnapshotWriter {
 public:
  explicit SnapshotWriter(const RunPlace& writers = {});
  ~SnapshotWriter();

  // Begins a snapshot; formats, options and files are those of write_snapshot(). May be called where busy() is false.
  // Throws Error, the same on all ranks, and then leaves nothing behind. Returns the names that the files will have.
  std::vector<std::string> begin(const std::string& path, SnapshotToWrite set, const Provenance& provenance,
                                 const WriteOptions& options);

  bool busy() const { return job_ != nullptr; }  // begun, and its outcome not returned yet; the same on all ranks
  // The outcome, once and as soon as there is one. Passes chunks to HDF5 for rank 0's `seconds`, at least a few.
  std::optional<SnapshotOutcome> look(double seconds = 0);
  // Waits for the outcome. May be called where busy() is true.
  SnapshotOutcome wait();
  // Expected seconds that HDF5 will take for the remaining chunks, by the time that it took for the others.
  double seconds_left() const;

 private:
  struct Job;
  std::optional<SnapshotOutcome> advance(double seconds);
  SnapshotOutcome conclude(const std::string& problem);

  RunPlace writers_;
  std::unique_ptr<Job> job_;  // of the snapshot under way
  RankThreads threads_;       // destroyed before the job
};

// Bytes a particle in a snapshot's file without deflate, in a periodic box.
double snapshot_bytes(const WriteOptions& options, bool long_ids = true);
// Bytes a particle that a SnapshotWriter takes beside the source while it writes.
double snapshot_writer_bytes(const WriteOptions& options);

}  // namespace maki
