#include "host/comm/device_payload.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "host/comm/followed_transfers.hpp"
#include "host/comm/nccl_ranks.hpp"
#include "host/comm/payload_transfer.hpp"
#include "host/comm/staged_transfer.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/error.hpp"

namespace maki {
namespace {

using Outgoing = Communicator::Outgoing;
using Incoming = Communicator::Incoming;

// Messages to or from other ranks, and the rank's messages to itself.
template <class Message>
struct Parted {
  std::vector<Message> others, own;
  std::size_t bytes = 0;  // of the others
};

template <class Message, class Peer>
Parted<Message> part(std::span<const Message> messages, int rank, const Peer& peer) {
  Parted<Message> parted;
  for (const Message& message : messages) {
    if (message.bytes == 0) continue;
    const bool own = peer(message) == rank;
    (own ? parted.own : parted.others).push_back(message);
    if (!own) parted.bytes += message.bytes;
  }
  return parted;
}

void copy_own(const Stream& stream, const std::vector<Outgoing>& out, const std::vector<Incoming>& in) {
  bool fits = out.size() == in.size();
  for (std::size_t i = 0; fits && i < out.size(); ++i) fits = out[i].bytes == in[i].bytes;
  if (!fits) throw Error("a rank's messages to itself have no place to go", "the sizes on both sides differ");
  for (std::size_t i = 0; i < out.size(); ++i) copy_on_device(stream, in[i].data, out[i].data, out[i].bytes);
}

// MPI sends from and receives into device memory, once the work before it is done.
class DirectTransfer final : public PayloadTransfer {
 public:
  DirectTransfer(const Communicator& ranks, const Stream& stream, PayloadMessages messages, int tag)
      : ranks_(ranks), messages_(std::move(messages)), tag_(tag) {
    ready_.set(stream);
    look();
  }

  Communicator::Look look() override {
    if (transfer_) return transfer_->look();
    if (!ready_.reached()) return Communicator::Look::kNothing;
    transfer_ = ranks_.begin_exchange(messages_.out, messages_.in, tag_);
    return Communicator::Look::kMoved;
  }
  std::vector<int> pending() const override { return transfer_ ? transfer_->pending() : std::vector<int>{}; }

 private:
  Communicator ranks_;
  PayloadMessages messages_;
  int tag_;
  StreamMark ready_;
  std::optional<Communicator::Transfer> transfer_;
};

}  // namespace

const char* name(PayloadPath path) {
  switch (path) {
    case PayloadPath::kNccl: return "NCCL";
    case PayloadPath::kDirect: return "MPI";
    case PayloadPath::kStaged: break;
  }
  return "staging";
}

std::size_t staging_piece(const Communicator& ranks) {
  constexpr std::size_t kLargest = std::size_t{4} << 20, kSmallest = std::size_t{64} << 10;
  constexpr std::size_t kAll = std::size_t{64} << 20;  // from all ranks at once, while pieces are not the smallest
  const std::size_t piece = std::clamp(kAll / static_cast<std::size_t>(ranks.size()), kSmallest, kLargest);
  return std::min(piece, ranks.limits().piece_bytes);
}

DevicePayload::DevicePayload(const Communicator& ranks, PayloadPath path) : ranks_(ranks), path_(path) {
  if (ranks.size() == 1) return;  // nothing is sent
  if (path == PayloadPath::kStaged) staging_ = std::make_shared<StagingPool>();
  if (path != PayloadPath::kNccl) return;
  if (!ranks_.nccl()) ranks_.nccl() = start_nccl(ranks_);
  followed_ = std::make_shared<FollowedTransfers>(ranks_);
}

std::size_t DevicePayload::bytes() const { return staging_ ? staging_->bytes() : 0; }

DevicePayload::Transfer::Transfer(const Communicator& ranks, std::shared_ptr<FollowedTransfers> followed,
                                  std::unique_ptr<PayloadTransfer> parts)
    : ranks_(ranks), followed_(std::move(followed)), parts_(std::move(parts)) {}
DevicePayload::Transfer::Transfer(Transfer&&) noexcept = default;
DevicePayload::Transfer& DevicePayload::Transfer::operator=(Transfer&&) noexcept = default;
DevicePayload::Transfer::~Transfer() = default;

bool DevicePayload::Transfer::progress() { return !parts_ || parts_->look() == Communicator::Look::kDone; }

bool DevicePayload::Transfer::needs_host() const { return parts_ && parts_->needs_host(); }

void DevicePayload::Transfer::finish(const Stream& stream) {
  if (!parts_) return;
  using Look = Communicator::Look;
  bool followed = false;
  const auto look = [&] {
    const Look seen = parts_->look();
    if (seen != Look::kDone) followed = parts_->follow(stream);
    return followed ? Look::kDone : seen;
  };
  ranks_.wait("an exchange of device memory", look, [&] { return parts_->pending(); });
  if (followed) followed_->add(std::move(parts_));
  parts_.reset();
}

DevicePayload::Transfer DevicePayload::begin(const Stream& stream, std::span<const Outgoing> out,
                                             std::span<const Incoming> in, int tag) {
  auto sent = part(out, ranks_.rank(), [](const Outgoing& message) { return message.to; });
  auto received = part(in, ranks_.rank(), [](const Incoming& message) { return message.from; });
  copy_own(stream, sent.own, received.own);
  if (sent.others.empty() && received.others.empty()) return Transfer(ranks_, followed_, nullptr);
  traffic_.messages += sent.others.size();
  traffic_.bytes += sent.bytes;
  std::unique_ptr<PayloadTransfer> transfer;
  PayloadMessages messages{std::move(sent.others), std::move(received.others)};
  switch (path_) {
    case PayloadPath::kNccl: transfer = begin_nccl(ranks_, ranks_.nccl(), stream, std::move(messages)); break;
    case PayloadPath::kDirect:
      transfer = std::make_unique<DirectTransfer>(ranks_, stream, std::move(messages), tag);
      break;
    case PayloadPath::kStaged:
      transfer =
          std::make_unique<StagedTransfer>(ranks_, staging_, stream, std::move(messages), tag, staging_piece(ranks_));
      break;
  }
  return Transfer(ranks_, followed_, std::move(transfer));
}

void DevicePayload::exchange(const Stream& stream, std::span<const Outgoing> out, std::span<const Incoming> in,
                             int tag) {
  begin(stream, out, in, tag).finish(stream);
}

}  // namespace maki
