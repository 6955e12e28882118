// The stream, timers, ranks and sites that all parts of a run share.
#pragma once

#include <memory>

#include "host/comm/communicator.hpp"
#include "kernels/device/stream.hpp"
#include "src/gravity/site_agreement.hpp"
#include "src/timing/phase_timers.hpp"

namespace maki {

// The place of a run: the ranks of this site, and all sites.
struct RunPlace {
  // A run at one site.
  RunPlace(const Communicator& of = Communicator::self()) : ranks(of), sites(std::make_shared<sites::Sites>(of)) {}
  // A run over the sites `in`, which has to outlive this.
  RunPlace(const Communicator& of, sites::Sites& in) : ranks(of), sites(&in, [](sites::Sites*) {}) {}
  Communicator ranks;
  std::shared_ptr<sites::Sites> sites;
};

struct RunContext {
  const Stream& stream;
  PhaseTimers& timers;
  SiteAgreement& agreement;
  Communicator ranks = Communicator::self();
};

}  // namespace maki
