// The ways in which device payloads travel, behind one face. Included by host/comm/*.cpp and *.cu only.
#pragma once

#include <vector>

#include "host/comm/communicator.hpp"
#include "kernels/device/stream.hpp"

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
  // Whether the rest goes on without the host, and `stream` was told to wait for it: done, as far as its later work can
  // tell. What it needs is kept until look() says kDone.
  virtual bool follow(const Stream& /*stream*/) { return false; }
  // Whether nothing goes on but in look().
  virtual bool needs_host() const { return true; }
  // Ranks that are still waited for.
  virtual std::vector<int> pending() const = 0;
};

}  // namespace maki
