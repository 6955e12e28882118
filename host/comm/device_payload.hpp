// Messages from device memory to the device memory of another rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "host/comm/communicator.hpp"
#include "kernels/device/stream.hpp"

namespace maki {

enum class PayloadPath {
  kNccl,    // between GPUs, where each rank has one of its own
  kDirect,  // MPI with device addresses: a CUDA-aware library, or device memory that is host memory
  kStaged,  // through page-locked host memory
};

const char* name(PayloadPath path);  // "NCCL", "MPI", "staging"

// The path for these ranks, the same on all, and the reason, for the log. NCCL where this build has it and no two ranks
// of a machine have selected the same GPU; else MPI itself where the library takes device addresses; else staging.
// MAKI_PAYLOAD=nccl|mpi|staged, on any rank, requests one. Collective, after a device is selected. Throws Error where
// MAKI_PAYLOAD names none of these, or a path that is not available.
struct PayloadChoice {
  PayloadPath path;
  std::string reason;
};
PayloadChoice choose_payload_path(const Communicator& ranks);

class FollowedTransfers;
class PayloadTransfer;
class StagingPool;

// Communicator::exchange() with addresses in device memory. A rank's messages to itself are copied on the device, in
// list order. Ranks with nothing to send or receive need not call.
class DevicePayload {
 public:
  // Collective.
  explicit DevicePayload(const Communicator& ranks) : DevicePayload(ranks, choose_payload_path(ranks).path) {}
  DevicePayload(const Communicator& ranks, PayloadPath path);

  const Communicator& ranks() const { return ranks_; }
  PayloadPath path() const { return path_; }

  // Messages in flight. Until finish(), sent data must not change and received data must not be read.
  class Transfer {
   public:
    Transfer(Transfer&&) noexcept;
    Transfer& operator=(Transfer&&) noexcept;
    // Cancels a transfer that was not finished: only valid where the job ends.
    ~Transfer();
    // Advances messages without waiting, and returns whether all are complete. Cheap; to be called now and then during
    // other work, because some networks, and all staging, advance only in such calls.
    bool progress();
    // Whether messages advance only within progress().
    bool needs_host() const;
    // Makes the received data available to work queued on `stream` afterwards. The host waits for the transfer; with
    // kNccl only `stream` does. Throws Error as Communicator::exchange(), for a lost peer or another size of message;
    // with kNccl Stream::synchronize() throws it.
    void finish(const Stream& stream);

   private:
    friend class DevicePayload;
    Transfer(const Communicator& ranks, std::shared_ptr<FollowedTransfers> followed,
             std::unique_ptr<PayloadTransfer> parts);
    Communicator ranks_;
    std::shared_ptr<FollowedTransfers> followed_;
    std::unique_ptr<PayloadTransfer> parts_;  // null: nothing is left to do
  };

  // Queues the exchange after the work that `stream` holds now: that work may write the data to send, and still use the
  // memory to receive into. Returns at once. Concurrent transfers have different tags, and all ranks begin them in the
  // same order.
  Transfer begin(const Stream& stream, std::span<const Communicator::Outgoing> out,
                 std::span<const Communicator::Incoming> in, int tag = 0);
  // begin() and finish() in one.
  void exchange(const Stream& stream, std::span<const Communicator::Outgoing> out,
                std::span<const Communicator::Incoming> in, int tag = 0);

  // Bytes of host memory for staging, kept between exchanges: at most kSends pieces to send and two for each message to
  // receive (StagedTransfer), each of staging_piece() bytes or of the message's size, whichever is less.
  std::size_t bytes() const;
  // For estimates: bytes of device memory that NCCL will take for itself; 0 where it is not the path, or has started.
  // Collective.
  static double nccl_bytes(const Communicator& ranks);

 private:
  Communicator ranks_;
  PayloadPath path_;
  std::shared_ptr<StagingPool> staging_;         // null without staging
  std::shared_ptr<FollowedTransfers> followed_;  // null without NCCL
};

// Bytes of a staging piece, equal on all ranks: 4 MiB; less with many ranks, or by the communicator's limits.
std::size_t staging_piece(const Communicator& ranks);

}  // namespace maki
