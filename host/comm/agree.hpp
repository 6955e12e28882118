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
// The texts of all ranks, in their order. For short ones: the longest sets the memory of each. Collective.
std::vector<std::string> gather_texts(const Communicator& ranks, const std::string& text);

// Where any rank names a problem (an empty text is none), all throw Error with that of the lowest rank that does.
// Collective.
void throw_together(const Communicator& ranks, const std::string& problem);

// Makes the call, which may be another on each rank but must not be collective, and throws on all ranks where it threw
// on any: the same Error everywhere. Collective. A process alone just makes the call.
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
