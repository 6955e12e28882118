#include "host/comm/machines.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

namespace maki {

Machines find_machines(const Communicator& ranks) {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  const Communicator here = ranks.split_by_machine();
  Machines machines;
  machines.name = name.data();
  machines.ranks_here = here.size();
  machines.number_here = here.rank();
  std::uint64_t lowest = static_cast<std::uint64_t>(ranks.rank());
  here.broadcast(&lowest, sizeof lowest, 0);
  std::vector<std::uint64_t> lowest_of(ranks.size());
  ranks.all_gather(&lowest, lowest_of.data(), sizeof lowest);
  machines.count = 0;
  std::vector<int> members(ranks.size());
  for (std::size_t r = 0; r < lowest_of.size(); ++r) {
    if (r == lowest) machines.this_one = machines.count;
    machines.count += lowest_of[r] == r;
    machines.most_ranks = std::max(machines.most_ranks, ++members[lowest_of[r]]);
  }
  return machines;
}

}  // namespace maki
