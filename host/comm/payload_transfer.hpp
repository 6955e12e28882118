// Transfers of device payloads: their common interface (NCCL, MPI, staging), those that streams follow, and staging by
// page-locked memory. Included by host/comm/*.cpp and *.cu only.
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

// ---- transfers that streams wait for and the host does not ----

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

// ---- messages by way of page-locked host memory, in pieces: while one is on the network the next is copied ----

// Staging memory, kept between transfers, and a stream for its copies beside the streams of the computation.
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

// From every sender, the next piece in order is posted or being copied at all times. So each piece that is sent meets a
// receive, in whatever order ranks send, and nothing can lock up however few pieces are in flight.
class StagedTransfer final : public PayloadTransfer {
 public:
  static constexpr std::size_t kSends = 16;     // pieces that are copied or sent at one time
  static constexpr std::size_t kOfMessage = 2;  // of each message: one on the bus, one on the network

  // Cuts at `piece` bytes, alike on all ranks.
  StagedTransfer(const Communicator& ranks, std::shared_ptr<StagingPool> pool, const Stream& stream,
                 PayloadMessages messages, int tag, std::size_t piece);
  ~StagedTransfer() override;

  Communicator::Look look() override;
  std::vector<int> pending() const override;

 private:
  // One piece on its way: over the device's bus, and over the network.
  struct Piece {
    int peer;
    std::size_t bytes;
    void* place;  // where it goes on the device
    StagingPool::Block block;
    StreamMark copied;
    std::optional<Communicator::Transfer> transfer;
  };
  struct Sending {
    Communicator::Outgoing message;
    std::size_t begun = 0;      // bytes
    std::vector<Piece> pieces;  // copied, then on the network
    bool on_network() const;    // all of it
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

}  // namespace maki
