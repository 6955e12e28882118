// The state of an incomplete light cone for a restart: lengths and checksums of each rank's spools, and the maps of
// unfinished shells. One file for each rank beside the light cone's files: state_000123.2.hdf5 for step 123 and rank 2.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/lightcone/spool.hpp"

namespace maki {

struct MapShare {
  std::uint64_t first = 0;  // pixel
  std::vector<std::uint64_t> counts;
};

// The state of one rank.
struct ConeState {
  std::map<std::string, spool::Mark> spools;  // by name
  std::map<std::size_t, MapShare> maps;       // by shell
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

// The missing or damaged parts of a step's state or its spools; empty where all are whole. Collective; the same on all
// ranks.
std::string damage_of_cone(const std::string& folder, std::uint64_t step, const Communicator& ranks);

// Steps of the states in `folder`, ascending; and the removal of all files of one of them.
std::vector<std::uint64_t> cone_state_steps(const std::string& folder);
void remove_cone_state(const std::string& folder, std::uint64_t step);

}  // namespace maki
