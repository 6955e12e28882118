// How two programs with MPWide's calls come to one path, whoever calls and whoever listens.
//
// Each side greets on every path to the other that stands. The side with the lower ticket takes the first of them and
// says so on it; the other side follows, and all other paths are closed. So two sides that call each other at the same
// time end with one path, and a side that cannot be called (or whose port is taken on this host) is no worse off.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "wan/net/mpw/environment.hpp"
#include "wan/net/mpw/shared_listener.hpp"
#include "wan/net/path.hpp"

namespace maki::wan::mpw {

enum class Manner {
  kWait,  // listens only (where the port is taken on this host, calls whoever has it)
  kCall,  // calls only, and does not wait for a peer that is not there
  kBoth,
};

struct MeetingPlan {
  std::string host;
  Manner manner = Manner::kBoth;
  std::vector<int> ports;  // of the channels that look for partners, in order; the first is called and listened on
  PathSettings settings;   // of the path
  Environment environment;
};

struct Met {
  Path path;
  std::vector<int> ports;  // of `plan.ports` those with a partner, in the order of the path's channels
  std::shared_ptr<SharedListener> listener;  // where the path came in; open as long as lost streams are to come back
};

// Throws Error where no path came about within the environment's `wait` (kCall: connect_timeout), SecurityError.
Met meet(const MeetingPlan& plan);

}  // namespace maki::wan::mpw
