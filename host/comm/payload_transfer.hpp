// The common interface of the transfers of device payloads (NCCL, MPI, staging). Included by host/comm/*.cpp and *.cu
// only.
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
  // Advances the transfer without waiting. After kDone all received data are in place on the device.
  virtual Communicator::Look look() = 0;
  // Makes later work of `stream` wait for the transfer and returns true, where the rest goes on without the host; false
  // where the host has to wait. The messages' memory is in use until look() returns kDone.
  virtual bool follow(const Stream& /*stream*/) { return false; }
  // Whether the transfer advances only within look().
  virtual bool needs_host() const { return true; }
  // Ranks that are still waited for.
  virtual std::vector<int> pending() const = 0;
};

}  // namespace maki
