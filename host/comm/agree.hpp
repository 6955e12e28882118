// Ranks that find out together: what goes wrong on one of them becomes the same Error on all.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"

namespace maki {

// The text of rank `root`, on all ranks. Collective.
std::string broadcast_text(const Communicator& ranks, const std::string& text, int root = 0);
// The texts of all ranks, in the order of ranks. For short texts: each takes the memory of the longest. Collective.
std::vector<std::string> gather_texts(const Communicator& ranks, const std::string& text);

// Throws Error on all ranks where `problem` is not empty on any: that of the lowest such rank. Collective.
void throw_together(const Communicator& ranks, const std::string& problem);

// Makes the call on each rank; where it throws on any, all ranks throw the same Error. The calls may differ between
// ranks but must not be collective; all_succeed() is. A process alone just makes the call.
template <class Call>
void all_succeed(const Communicator& ranks, Call&& call) {
  if (ranks.size() == 1) return call();
  std::string problem;
  try {
    call();
  } catch (const std::bad_alloc&) {
    problem = "rank " + std::to_string(ranks.rank()) + " is out of memory";
  } catch (const std::exception& error) {
    problem = error.what();
  }
  throw_together(ranks, problem);
}

// The same for a call that rank 0 makes for all.
template <class Call>
void root_succeeds(const Communicator& ranks, Call&& call) {
  all_succeed(ranks, [&] {
    if (ranks.rank() == 0) call();
  });
}

}  // namespace maki
