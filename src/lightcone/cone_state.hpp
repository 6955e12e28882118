// What a restart of a run keeps of a light cone that is not complete: how long each rank's spools are, with checksums, and
// the maps of shells that are open. Beside the light cone's files, one file for each rank: state_000123.2.hdf5 of step 123 and rank
// 2.
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

// Of one rank.
struct ConeState {
  std::map<std::string, spool::Mark> spools;  // by name
  std::map<std::size_t, MapShare> maps;       // by shell
};

// Writes this rank's state in `folder`. Collective. Throws Error, the same on all ranks.
void write_cone_state(const std::string& folder, std::uint64_t step, const ConeState& state, const Communicator& ranks);

// The states of all the ranks that there were, those with number r on rank r modulo the number of ranks now.
// Collective. Throws Error, the same on all ranks, where one is missing or damaged.
std::vector<ConeState> read_cone_states(const std::string& folder, std::uint64_t step, const Communicator& ranks);

// The spools that the states name, of those the ones that this rank sees to from here on: whose rank of old is this one
// modulo the number of ranks now. Reads them. Collective. Throws Error, the same on all ranks, where one is missing, cut
// off or another one than it was.
std::map<std::string, spool::RunningMark> reopen_spools(const std::string& folder, const std::vector<ConeState>& states,
                                                        const Communicator& ranks);

// What of the state of a step, or of its spools, is missing or damaged; empty where all is whole. Collective; the same on
// all ranks.
std::string damage_of_cone(const std::string& folder, std::uint64_t step, const Communicator& ranks);

// Steps of the states in `folder`, ascending; and the removal of all files of one of them.
std::vector<std::uint64_t> cone_state_steps(const std::string& folder);
void remove_cone_state(const std::string& folder, std::uint64_t step);

}  // namespace maki
