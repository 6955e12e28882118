// Several sites in one process and thread: joined in memory, for calls of which each gives before any takes; or
// replayed, for what waits or has several ranks.
//
// Every replayed site's call runs until it wants a message that is not there yet. Then the next site has its turn, and
// so on around, each from its beginning again but with all messages that were sent so far. Calls have to be repeatable.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/kernels/particles/on_device.hpp"
#include "tests/sites/memory_ring.hpp"
#include "wan/sites/sites.hpp"

namespace maki::test {

// Site0, site1, ... of a ring in memory, each of one rank.
inline std::vector<std::unique_ptr<sites::Sites>> sites_in_memory(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("site" + std::to_string(i));
  std::vector<std::unique_ptr<sites::Sites>> all;
  for (auto& ring : sites::make_memory_rings(count))
    all.push_back(std::make_unique<sites::Sites>(std::move(ring), names, Communicator::self()));
  return all;
}

inline bool not_sent_yet(const Error& error) {  // at any rank
  return std::string(error.what()).find(sites::kNotSentYet) != std::string::npos;
}

inline std::vector<std::string> replayed_names(int count) {
  const std::vector<std::string> names = {"north", "east", "south", "west"};
  return {names.begin(), names.begin() + count};
}

// call(sites) at each of them; each site has all of `ranks`, which call this together. Other errors are thrown. Returns
// what was sent.
inline sites::ReplayRing::Sent replay_sites(int count, const std::function<void(sites::Sites&)>& call,
                                            const Communicator& ranks = Communicator::self()) {
  sites::ReplayRing::Sent sent;
  const std::vector<std::string> names = replayed_names(count);
  std::vector<bool> ended(names.size());
  for (int left = count; left > 0;) {
    for (int site = 0; site < count; ++site) {
      if (ended[static_cast<std::size_t>(site)]) continue;
      try {
        sites::Sites one(ranks.rank() == 0 ? std::make_unique<sites::ReplayRing>(sent, count, site) : nullptr, names,
                         ranks);
        call(one);
        ended[static_cast<std::size_t>(site)] = true;
        --left;
      } catch (const Error& error) {
        if (!not_sent_yet(error)) throw;
      }
    }
  }
  return sent;
}

// What each site's call throws.
inline std::vector<std::string> errors_at_sites(int count, const std::function<void(sites::Sites&)>& call) {
  std::vector<std::string> errors(static_cast<std::size_t>(count));
  replay_sites(count, [&](sites::Sites& sites) {
    try {
      call(sites);
    } catch (const Error& error) {
      if (not_sent_yet(error)) throw;
      errors[static_cast<std::size_t>(sites.me())] = error.what();
    }
  });
  return errors;
}

}  // namespace maki::test
