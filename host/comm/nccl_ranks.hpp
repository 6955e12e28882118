// NCCL for device payloads; builds without NCCL (Makefile) refuse it.
#pragma once

#include <memory>
#include <string>

#include "host/comm/payload_transfer.hpp"
#include "kernels/device/stream.hpp"

namespace maki {

// The NCCL version ("2.28.9") that this build is linked to; empty in a build without NCCL.
std::string nccl_version();

// NCCL's communicator of some ranks, each of which has selected a GPU of its own.
class NcclRanks {
 public:
  virtual ~NcclRanks() = default;
};

// Collective. Throws Error where NCCL fails or a rank is missing.
std::shared_ptr<NcclRanks> start_nccl(const Communicator& ranks);

// Queues all messages as one group after the work that `stream` holds now; empty messages are not allowed. All groups
// of this process, whatever their ranks, run one after the other in the order of these calls, which is the same on all
// ranks. So no two groups can each hold a GPU that the other needs (a deadlock).
std::unique_ptr<PayloadTransfer> begin_nccl(const Communicator& ranks, std::shared_ptr<NcclRanks> nccl,
                                            const Stream& stream, PayloadMessages messages);

}  // namespace maki
