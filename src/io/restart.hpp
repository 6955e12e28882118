// Restarts: the exact state of a run, from which `maki resume` goes on.
//
// A restart is a folder restart_000123 (the number is that of the step) in the output directory of a run: a file
// rank_0.hdf5, rank_1.hdf5, ... of each rank, and complete.toml, which is written last. Without complete.toml the
// folder is no restart. complete.toml holds the checksums of all other files and ends with its own, so that any changed
// or missing byte is detected. Each file is written under a temporary name, flushed to the disk and renamed; a write
// that fails removes what it had begun and touches no other restart.
//
// A thread of each rank writes its file while the run goes on. Only the caller's thread calls HDF5 and MPI. begin()
// lets HDF5 make the file and reserves its space on the disk, so that a full disk is found at once and other writers do
// not run out of space later. The thread writes the numbers at the addresses that HDF5 allocated, flushes the file and
// renames it. In look() the ranks agree whether all threads have finished; then a thread of rank 0 writes complete.toml
// and removes the oldest restarts.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "kernels/particles/particles.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/io/rank_threads.hpp"
#include "src/io/safe_file.hpp"
#include "src/io/snapshot.hpp"

namespace maki {

// Format number of restarts; restarts with another number are refused.
inline constexpr std::uint64_t kRestartFormat = 9;

using HostVectors = std::array<std::vector<float>, 3>;  // by axis

// A rank's particles on the host, with the same bits as on the device, kBytes each.
struct ParticleRows {
  static constexpr double kBytes =
      sizeof(SourceParticle) + sizeof(Remainder) + 3 * sizeof(float) + sizeof(std::uint64_t);

  std::vector<SourceParticle> source;
  std::vector<Remainder> remainder;
  HostVectors momentum;
  std::vector<std::uint64_t> id;
  // Long-range accelerations of the beginning of the long step under way (Gravity::long_acceleration()), kLongBytes
  // each; none where a long step has ended.
  static constexpr double kLongBytes = 3 * sizeof(float);
  std::optional<HostVectors> long_acceleration;
  std::size_t size() const { return source.size(); }
};
// Block until the copy is complete; reuse the vectors' memory. The first leaves rows.long_acceleration as it is.
void copy_to_rows(const Stream& stream, const Particles& particles, ParticleRows& rows);
void copy_to_rows(const Stream& stream, const VectorArray& vectors, HostVectors& rows);
void copy_from_rows(const Stream& stream, const HostVectors& rows, VectorArray& vectors);
void copy_from_rows(const Stream& stream, const ParticleRows& rows, Particles& particles);

// A rank's particles that were set aside (GravityField::escapers()).
struct EscaperRows {
  std::vector<std::array<double, 3>> positions;
  std::vector<std::array<float, 3>> velocities;
  std::vector<float> masses;
  std::vector<std::uint64_t> ids;
  std::vector<double> times;
  std::size_t size() const { return ids.size(); }
};

// All other numbers of a state, by name; the same on all ranks.
struct StateNumbers {
  std::map<std::string, std::vector<double>> reals;
  std::map<std::string, std::vector<std::uint64_t>> counts;
  bool operator==(const StateNumbers&) const = default;
};

// The contents of complete.toml.
struct RestartInfo {
  std::string path;  // of the folder
  std::string run;   // its name (run_directory.hpp); "" in restarts older than such names
  std::uint64_t format = kRestartFormat;
  std::uint64_t step = 0;
  double time = 0;                       // scale factor, or time
  std::vector<std::uint64_t> particles;  // of each rank's file
  std::vector<std::string> checksums;    // of each rank's file, XXH3
  int site = 0, sites = 1;               // place in the ring, and its length
  std::vector<std::string> site_keys;    // settings with the paths of the key files of links between sites
  Provenance provenance;                 // of the run, with its resolved configuration
};

struct Restart {
  RestartInfo info;
  StateNumbers numbers;
  ParticleRows particles;  // of this rank
  EscaperRows escapers;
};

// Complete restarts in an output directory, the earliest first, also those of another format. `path` may also be the
// folder of one restart. `damaged` gets the names of folders whose complete.toml is damaged. Collective; rank 0 reads.
// Throws Error where the directory or a complete.toml cannot be read.
std::vector<RestartInfo> find_restarts(const std::string& path, const Communicator& ranks = Communicator::self(),
                                       std::vector<std::string>* damaged = nullptr);

// Throws Error where the restart was written in another format.
void require_known_format(const RestartInfo& info);

// The damage to the files of a restart, as a phrase: "'.../rank_0.hdf5' has another checksum"; empty where all are
// whole. Each rank reads some of the files. Collective; the same on all ranks.
std::string damage_of(const RestartInfo& info, const Communicator& ranks = Communicator::self());

// Reads a restart on any number of ranks: if as many wrote it, each gets back its own rows, else even shares of all
// rows. Collective. Throws Error, the same on all ranks, where the format is another one, or where damage_of() is not
// empty. `known_whole`: the caller has found it empty, and it is not asked again.
Restart read_restart(const RestartInfo& info, const Communicator& ranks = Communicator::self(),
                     bool known_whole = false);

// Removes the restarts of later steps, and incomplete ones: the run goes on from `step`. Returns the names of those
// among them that may have been complete. Collective. Throws Error, the same on all ranks.
std::vector<std::string> remove_restarts_after(const std::string& directory, std::uint64_t step,
                                               const Communicator& ranks = Communicator::self());

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
  double seconds = 0;   // of work (RankThreads::take_seconds)
};

// Writes one restart at a time. All members are collective except busy() and the destructor. The destructor waits for
// this rank's thread; a restart not complete by then stays an incomplete folder.
class RestartWriter {
 public:
  explicit RestartWriter(const Communicator& ranks = Communicator::self()) : ranks_(ranks), threads_(ranks) {}

  // Begins a restart in `directory`, replacing one of the same step. Once it is complete, the oldest complete ones are
  // removed until `keep` are left (`needed`: restart_folder::prune()). Fills in path, format, particles and checksums
  // of `info`. May be called where busy() is false. `rows` must not change until the outcome is known. Throws Error,
  // the same on all ranks.
  void begin(const std::string& directory, const RestartInfo& info, const StateNumbers& numbers,
             const RestartRows& rows, int keep, std::uint64_t needed = 0);

  bool busy() const { return folder_ != nullptr; }  // begun, and its outcome not returned yet; the same on all ranks
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
  bool completing_ = false;
  RankThreads threads_;
};

// A column of numbers in a rank's file. `put` copies `count` rows from `first` on back from `from`.
struct RestartColumn {
  const char* group;
  const char* name;
  hid_t type;
  std::size_t rows;
  RowSource source;
  std::function<void(std::size_t first, std::size_t count, const void* from)> put;
};

inline constexpr const char* kLongAccelerations = "LongAccelerations";  // dataset, where a long step is under way

// The columns refer to both arguments, whose lengths must not change meanwhile.
std::vector<RestartColumn> restart_columns(ParticleRows& particles, EscaperRows& escapers);

void resize(ParticleRows& rows, std::size_t n);
void resize(EscaperRows& rows, std::size_t n);

// The folders of restarts (one process at a time): names, complete.toml, removal.
namespace restart_folder {

// "restart_000123"; and the step of such a name, -1 for any other name.
std::string name_of(std::uint64_t step);
std::int64_t step_of(const std::string& name);
std::string rank_file(const std::string& folder, int rank);

// Makes an empty folder. Throws Error.
void begin(const std::string& folder);
// Writes complete.toml, which makes the folder a restart. Its last line is the checksum of all lines before. Throws
// Error.
void complete(const std::string& folder, const RestartInfo& info);

// State of a folder by its complete.toml; damaged: changed or cut off since it was written; unreadable: it is there,
// and the system does not give it (permissions, a disk that fails, no file descriptor left).
enum class Found { kIncomplete, kComplete, kDamaged, kUnreadable };
Found read(const std::string& folder, RestartInfo& info);
// Removes the folder, complete.toml first. Errors are ignored.
void remove(const std::string& folder) noexcept;
// Folders with the name of a restart, complete or not, the earliest first. Throws Error.
std::vector<std::string> list(const std::string& directory);
// Removes incomplete restarts, and complete ones of its run until `keep` are left. Keeps `newest`, unreadable
// ones, and the one of step `needed`, from which all sites can resume, with the one before it, which has to serve if
// that is damaged at a site.
void prune(const std::string& directory, const RestartInfo& newest, int keep, std::uint64_t needed = 0);

}  // namespace restart_folder

}  // namespace maki
