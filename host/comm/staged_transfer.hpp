// Device messages by way of page-locked host memory, in pieces: while one is on the network the next is copied.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "host/comm/payload_transfer.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/device/stream.hpp"

namespace maki {

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
