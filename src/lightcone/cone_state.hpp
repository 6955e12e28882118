// An incomplete light cone on the disk: spools, and states for restarts.
//
// A spool holds the particles of one incomplete shell that one rank has collected: ShellParticle records without a
// header, to which steps append. A state, of one rank for one restart, holds lengths and checksums of the spools and
// the maps of incomplete shells: state_000123.2.hdf5 for step 123 and rank 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/io/safe_file.hpp"
#include "src/lightcone/cone_shells.hpp"

namespace maki::spool {

// "conesnap_003.2.spool": of shell 3 and rank 2.
std::string name_of(std::size_t shell, int rank);
// The shell and the rank of such a name; -1 for any other name.
int shell_of(const std::string& name);
int rank_of(const std::string& name);

// The length of a spool, and its checksum.
struct Mark {
  std::uint64_t bytes = 0;
  std::string checksum;
  bool operator==(const Mark&) const = default;
};

// A mark that follows appended records.
class RunningMark {
 public:
  void add(const void* data, std::size_t bytes);
  void add(const std::vector<ShellParticle>& records) { add(records.data(), records.size() * sizeof(ShellParticle)); }
  Mark mark() const { return {bytes_, sum_.text()}; }

 private:
  std::uint64_t bytes_ = 0;
  Checksum sum_;
};

// Reads the first then.bytes of a file, to continue its mark. Throws Error where it is shorter or its checksum differs.
RunningMark reopen(const std::string& path, const Mark& then);

// Bytes of the file; 0 where there is none.
std::uint64_t bytes(const std::string& path);
// Throws Error where the file has fewer bytes.
void require_bytes(const std::string& path, std::uint64_t least);
// Appends records; the file is made with the first ones. Throws Error.
void append(const std::string& path, const std::vector<ShellParticle>& records);
// Flushes the file, where it should have bytes, to the disk. Throws Error, also where it has fewer.
void sync(const std::string& path, std::uint64_t least);
// Truncates the file, and removes it where `bytes` is 0. Throws Error.
void cut(const std::string& path, std::uint64_t bytes);
// Adds the records of the file to `to`. Throws Error, also where the file differs from `all`.
void read(const std::string& path, const Mark& all, std::vector<ShellParticle>& to);

}  // namespace maki::spool

namespace maki {

struct MapShare {
  std::uint64_t first = 0;  // pixel
  std::vector<std::uint64_t> counts;
};

// The state of one rank.
struct ConeState {
  std::map<std::string, spool::Mark> spools;  // by name
  std::map<std::size_t, MapShare> maps;       // by shell
  double quantum = 0;                         // mass of a count of the maps; 0: none is begun
};

// Writes this rank's state in `folder`. Collective. Throws Error, the same on all ranks.
void write_cone_state(const std::string& folder, std::uint64_t step, const ConeState& state, const Communicator& ranks);

// The states of all earlier ranks; that of rank r is on rank r modulo the present number of ranks. Collective. Throws
// Error, the same on all ranks, where one is missing or damaged.
std::vector<ConeState> read_cone_states(const std::string& folder, std::uint64_t step, const Communicator& ranks);

// The spools of the states that this rank continues: those of earlier ranks equal to this one modulo the present number
// of ranks. Reads them. Collective. Throws Error, the same on all ranks, where one is missing, cut off or changed.
std::map<std::string, spool::RunningMark> reopen_spools(const std::string& folder, const std::vector<ConeState>& states,
                                                        const Communicator& ranks);

// The missing or damaged parts of a step's state or its spools; empty where all are whole. It begins with "cannot read"
// only where a file may be whole. Collective; the same on all ranks.
std::string damage_of_cone(const std::string& folder, std::uint64_t step, const Communicator& ranks);

// Steps of the states in `folder`, ascending; and the removal of all files of one of them.
std::vector<std::uint64_t> cone_state_steps(const std::string& folder);
void remove_cone_state(const std::string& folder, std::uint64_t step);

}  // namespace maki
