// The stream, timers, ranks and sites that all parts of a step use.
#pragma once

#include "host/comm/communicator.hpp"
#include "kernels/device/stream.hpp"
#include "src/gravity/site_agreement.hpp"
#include "src/timing/phase_timers.hpp"

namespace maki {

struct RunContext {
  const Stream& stream;
  PhaseTimers& timers;
  SiteAgreement& agreement;
  Communicator ranks = Communicator::self();
};

}  // namespace maki
