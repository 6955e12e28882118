// What a restart of a run keeps of a light cone that is not complete: how long each rank's spools are, and the maps of
// shells that are open. Beside the light cone's files, one file for each rank: state_000123.2.hdf5 of step 123 and rank
// 2.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"

namespace maki {

struct MapShare {
  std::uint64_t first = 0;  // pixel
  std::vector<std::uint64_t> counts;
};

// Of one rank.
struct ConeState {
  std::map<std::string, std::uint64_t> spools;  // bytes by name
  std::map<std::size_t, MapShare> maps;         // by shell
};

// Writes this rank's state in `folder`. Collective. Throws Error, the same on all ranks.
void write_cone_state(const std::string& folder, std::uint64_t step, const ConeState& state, const Communicator& ranks);

// The states of all the ranks that there were, those with number r on rank r modulo the number of ranks now.
// Collective. Throws Error, the same on all ranks, where one is missing or damaged.
std::vector<ConeState> read_cone_states(const std::string& folder, std::uint64_t step, const Communicator& ranks);

// Steps of the states in `folder`, ascending; and the removal of all files of one of them.
std::vector<std::uint64_t> cone_state_steps(const std::string& folder);
void remove_cone_state(const std::string& folder, std::uint64_t step);

}  // namespace maki
