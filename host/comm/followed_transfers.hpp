// Transfers that streams wait for and the host does not. Included by host/comm/*.cpp only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "host/comm/payload_transfer.hpp"

namespace maki {

// While one is under way the host must not wait for a stream without looking after it: a peer that is lost would never
// be noticed. So it stands in for Stream::synchronize() (StreamWaiter) on the thread that made it.
class FollowedTransfers {
 public:
  explicit FollowedTransfers(const Communicator& ranks);
  // Waits for what is under way; gives it up where an exception leaves this scope, or where peers are lost.
  ~FollowedTransfers();
  FollowedTransfers(const FollowedTransfers&) = delete;
  FollowedTransfers& operator=(const FollowedTransfers&) = delete;

  void add(std::unique_ptr<PayloadTransfer> transfer);

 private:
  static void wait_for(const std::function<bool()>& reached);
  std::size_t under_way();  // how many, without those that are done; throws as they do
  std::vector<int> pending() const;

  Communicator ranks_;
  std::vector<std::unique_ptr<PayloadTransfer>> transfers_;
};

}  // namespace maki
