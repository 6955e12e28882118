// What all parts of a run work with.
#pragma once

#include "host/comm/communicator.hpp"
#include "kernels/device/stream.hpp"
#include "src/gravity/site_agreement.hpp"
#include "src/timing/phase_timers.hpp"

namespace maki {

// Where a run is: the ranks of this site, and in a run over several of them all sites.
struct RunPlace {
  RunPlace(const Communicator& of = Communicator::self(), sites::Sites* in = nullptr) : ranks(of), sites(in) {}
  Communicator ranks;
  sites::Sites* sites;
};

struct RunContext {
  const Stream& stream;
  PhaseTimers& timers;
  Communicator ranks = Communicator::self();
  SiteAgreement* sites = nullptr;  // null in a run of one site
};

}  // namespace maki
