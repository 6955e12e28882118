// Shares of a set over many ranks beside the set of one.
#pragma once

#include "host/comm/communicator.hpp"
#include "src/io/snapshot.hpp"

namespace maki {

// Expects that the shares of all ranks, one after the other, are `whole` bit by bit. Collective.
void expect_shares_of(const Snapshot& whole, const Snapshot& share, const Communicator& ranks);

}  // namespace maki
