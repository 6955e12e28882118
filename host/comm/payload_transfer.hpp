// The ways in which device payloads travel, behind one face. Included by host/comm/*.cpp and *.cu only.
#pragma once

#include <vector>

#include "host/comm/communicator.hpp"

namespace maki {

// Messages between other ranks' device memory and this one's, none of them empty.
struct PayloadMessages {
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
};

class PayloadTransfer {
 public:
  virtual ~PayloadTransfer() = default;
  // Moves on without waiting. After kDone all that was received is in place on the device.
  virtual Communicator::Look look() = 0;
  // Ranks that are still waited for.
  virtual std::vector<int> pending() const = 0;
};

}  // namespace maki
