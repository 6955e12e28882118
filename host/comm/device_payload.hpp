// Messages from device memory to device memory of another rank.
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
  kNccl,    // from GPU to GPU, where each rank has one of its own
  kDirect,  // MPI is given device addresses: a CUDA-aware library, or device memory that is host memory
  kStaged,  // by page-locked host memory
};

const char* name(PayloadPath path);  // "NCCL", "MPI", "staging"

// The path for these ranks, alike on all of them, and why: for the log. NCCL where this build has it and no two ranks
// of a machine have selected the same GPU; else MPI by itself where the library takes device addresses; else staging.
// MAKI_PAYLOAD=nccl|mpi|staged asks for one. Collective, once a device is selected. Throws Error where the requested
// path is not available.
struct PayloadChoice {
  PayloadPath path;
  std::string reason;
};
PayloadChoice choose_payload_path(const Communicator& ranks);

class FollowedTransfers;
class PayloadTransfer;
class StagingPool;

// The communicator's exchanges with addresses in device memory. A rank's messages to itself are copied on the device,
// in the order of the lists. Ranks with nothing to send or receive need not call.
class DevicePayload {
 public:
  // Collective.
  explicit DevicePayload(const Communicator& ranks) : DevicePayload(ranks, choose_payload_path(ranks).path) {}
  DevicePayload(const Communicator& ranks, PayloadPath path);

  const Communicator& ranks() const { return ranks_; }
  PayloadPath path() const { return path_; }

  // Messages on their way. What is sent is not changed, and what is received not looked at, until finish().
  class Transfer {
   public:
    Transfer(Transfer&&) noexcept;
    Transfer& operator=(Transfer&&) noexcept;
    // Gives up a transfer that was not finished: only right where the job ends.
    ~Transfer();
    // Moves messages on without waiting: cheap, and to be called now and then while other work is done, because some
    // networks and all staging move in such calls only. Whether all has come and gone.
    bool progress();
    // Whether messages advance only within progress().
    bool needs_host() const;
    // The received data are in place for work queued on `stream` afterwards. The host waits for the transfer; where
    // GPUs exchange by themselves (kNccl) only `stream` does. Throws Error as Communicator::exchange() for a peer that
    // does not come, or sends another size; where only the stream waits, Stream::synchronize() throws it.
    void finish(const Stream& stream);

   private:
    friend class DevicePayload;
    Transfer(const Communicator& ranks, std::shared_ptr<FollowedTransfers> followed,
             std::unique_ptr<PayloadTransfer> parts);
    Communicator ranks_;
    std::shared_ptr<FollowedTransfers> followed_;
    std::unique_ptr<PayloadTransfer> parts_;  // null: nothing is left to do
  };

  // Queues the exchange behind the work that `stream` holds now: it sends what this work writes, and receives into
  // memory that this work may still use. Returns at once. Transfers under way at one time have different tags, and all
  // ranks begin them in the same order.
  Transfer begin(const Stream& stream, std::span<const Communicator::Outgoing> out,
                 std::span<const Communicator::Incoming> in, int tag = 0);
  // begin() and finish() in one.
  void exchange(const Stream& stream, std::span<const Communicator::Outgoing> out,
                std::span<const Communicator::Incoming> in, int tag = 0);

  // Messages sent to other ranks by this object so far; none is empty.
  struct Traffic {
    std::uint64_t messages = 0, bytes = 0;
  };
  Traffic traffic() const { return traffic_; }
  // Bytes of host memory for staging, kept between exchanges: at most kSends pieces to send and two for each message to
  // receive (StagedTransfer), each of staging_piece() bytes or of the message's size, whichever is less.
  std::size_t bytes() const;

 private:
  Communicator ranks_;
  PayloadPath path_;
  std::shared_ptr<StagingPool> staging_;         // null without staging
  std::shared_ptr<FollowedTransfers> followed_;  // null without NCCL
  Traffic traffic_;
};

// Bytes of a piece for staging, equal on all ranks: 4 MiB, less with many ranks or where the communicator's limits say
// so.
std::size_t staging_piece(const Communicator& ranks);

}  // namespace maki
