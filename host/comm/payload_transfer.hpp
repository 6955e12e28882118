// The common interface of the transfers of device payloads (NCCL, MPI, staging). Included by host/comm/*.cpp and *.cu
// only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
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

// Transfers that streams wait for and the host does not. Included by host/comm/*.cpp only.

// While a transfer is under way, a host that waits for a stream has to poll the transfer as well: else the loss of a
// peer would never be noticed. So this object is the StreamWaiter, called by Stream::synchronize(), of the thread that
// made it.
class FollowedTransfers {
 public:
  explicit FollowedTransfers(const Communicator& ranks);
  // Waits for the transfers under way; gives them up where an exception leaves this scope, or where peers are lost.
  ~FollowedTransfers();
  FollowedTransfers(const FollowedTransfers&) = delete;
  FollowedTransfers& operator=(const FollowedTransfers&) = delete;

  void add(std::unique_ptr<PayloadTransfer> transfer);

 private:
  static void wait_for(const std::function<bool()>& reached);
  std::size_t under_way();  // number of transfers, without those that are done; throws as their look()
  std::vector<int> pending() const;

  Communicator ranks_;
  std::vector<std::unique_ptr<PayloadTransfer>> transfers_;
};

}  // namespace maki
