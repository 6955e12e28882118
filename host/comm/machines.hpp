// Which machines the ranks of a job are on.
#pragma once

#include <string>

#include "host/comm/communicator.hpp"

namespace maki {

struct Machines {
  int count = 1;        // machines with ranks of the communicator
  int this_one = 0;     // 0 ... count-1, in the order of their lowest ranks
  int ranks_here = 1;   // on this machine
  int number_here = 0;  // of this rank among those: 0 ... ranks_here-1, which can choose the GPU
  int most_ranks = 1;   // on the machine with the most
  std::string name;     // of this machine, as the network knows it
};

// Collective.
Machines find_machines(const Communicator& ranks);

}  // namespace maki
