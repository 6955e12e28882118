// Transfers that streams wait for and the host does not. Included by host/comm/*.cpp only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "host/comm/payload_transfer.hpp"

namespace maki {

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
