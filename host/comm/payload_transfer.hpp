// Transfers between device memories (device_payload.hpp): their common interface, transfers by NCCL, for which only a
// stream waits, and staging through page-locked memory. Included by host/comm/*.cpp and *.cu only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "host/comm/communicator.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/device/stream.hpp"

namespace maki {

// Non-empty messages between this rank's device memory and that of other ranks.
struct PayloadMessages {
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
};

class PayloadTransfer {
 public:
  virtual ~PayloadTransfer() = default;
  // Advances the transfer without waiting. After kDone all received data are in device memory.
  virtual Communicator::Look look() = 0;
  // Makes later work of `stream` wait for the transfer and returns true, where the rest needs no host; false where the
  // host has to wait. The messages' memory is in use until look() returns kDone.
  virtual bool follow(const Stream& /*stream*/) { return false; }
  // Whether the transfer advances only within look().
  virtual bool needs_host() const { return true; }
  // Ranks that are still waited for.
  virtual std::vector<int> pending() const = 0;
};

// ---- transfers that only streams wait for ----

// The transfers in progress that only a stream waits for. The host polls them whenever it waits for a stream: otherwise
// the loss of a peer would go unnoticed. So this object is the StreamWaiter (kernels/device/stream.hpp) of the thread
// that made it.
class FollowedTransfers {
 public:
  explicit FollowedTransfers(const Communicator& ranks);
  // Waits for the transfers in progress; cancels them where an exception leaves this scope, or where peers are lost.
  ~FollowedTransfers();
  FollowedTransfers(const FollowedTransfers&) = delete;
  FollowedTransfers& operator=(const FollowedTransfers&) = delete;

  void add(std::unique_ptr<PayloadTransfer> transfer);

 private:
  static void wait_for(const std::function<bool()>& reached);
  std::size_t under_way();  // number of incomplete transfers; throws as their look()
  std::vector<int> pending() const;

  Communicator ranks_;
  std::vector<std::unique_ptr<PayloadTransfer>> transfers_;
};

// ---- messages through page-locked host memory, in pieces: while one is on the network the next is copied ----

// Staging memory, kept between transfers, and a stream for its copies beside the streams of computation.
class StagingPool {
 public:
  using Block = std::unique_ptr<PinnedBuffer>;
  Block take(std::size_t bytes);
  void give(Block block) { free_.push_back(std::move(block)); }
  std::size_t bytes() const { return bytes_; }
  const Stream& stream() const { return stream_; }

 private:
  std::vector<Block> free_;
  std::size_t bytes_ = 0;
  Stream stream_;
};

// A transfer in pieces. For every sender, a receive of the next piece in order is always posted or being copied. So
// each sent piece meets a receive, in whatever order ranks send: there is no deadlock, however few pieces are in
// flight.
class StagedTransfer final : public PayloadTransfer {
 public:
  static constexpr std::size_t kSends = 16;     // pieces being copied or sent at one time
  static constexpr std::size_t kOfMessage = 2;  // of each message: one on the bus, one on the network

  // Pieces have `piece` bytes, the same on all ranks.
  StagedTransfer(const Communicator& ranks, std::shared_ptr<StagingPool> pool, const Stream& stream,
                 PayloadMessages messages, int tag, std::size_t piece);
  ~StagedTransfer() override;

  Communicator::Look look() override;
  std::vector<int> pending() const override;

 private:
  // One piece in transit: over the device's bus, and over the network.
  struct Piece {
    int peer;
    std::size_t bytes;
    void* place;  // its place on the device
    StagingPool::Block block;
    StreamMark copied;
    std::optional<Communicator::Transfer> transfer;
  };
  struct Sending {
    Communicator::Outgoing message;
    std::size_t begun = 0;      // bytes
    std::vector<Piece> pieces;  // copied, then on the network
    bool on_network() const;    // whether all of it is
  };
  struct Receiving {
    Communicator::Incoming message;
    std::size_t begun = 0;
    std::vector<Piece> pieces;  // posted, then copied
  };

  bool send_on(Sending& to);
  bool receive_on(Receiving& from);
  void copy_out(Sending& to);
  void post(Receiving& from);

  Communicator ranks_;
  std::shared_ptr<StagingPool> pool_;
  std::vector<Sending> sends_;
  std::vector<Receiving> receives_;
  std::size_t sending_ = 0;  // pieces of all sends_
  int tag_;
  std::size_t piece_;
};

// ---- NCCL for device payloads; builds without it (Makefile) refuse --------------------------------------------------

// NCCL's communicator of these ranks, each of which has selected a GPU of its own. Collective. Throws Error where NCCL
// fails or a rank is missing.
std::shared_ptr<NcclRanks> start_nccl(const Communicator& ranks);

// Queues all messages as one group after the work that `stream` holds now; empty messages are not allowed. All groups
// of this process, whatever their ranks, run one after the other in the order of these calls, which is the same on all
// ranks. So no two groups can each hold a GPU that the other needs (a deadlock).
std::unique_ptr<PayloadTransfer> begin_nccl(const Communicator& ranks, std::shared_ptr<NcclRanks> nccl,
                                            const Stream& stream, PayloadMessages messages);

}  // namespace maki
