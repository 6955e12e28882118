#include "host/comm/device_payload.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "host/comm/job.hpp"
#include "host/comm/payload_transfer.hpp"
#include "kernels/device/device.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/error.hpp"

#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

namespace maki {

namespace {

using Outgoing = Communicator::Outgoing;
using Incoming = Communicator::Incoming;

// Messages with other ranks, and the rank's messages to itself.
template <class Message>
struct Parted {
  std::vector<Message> others, own;
};

template <class Message, class Peer>
Parted<Message> part(std::span<const Message> messages, int rank, const Peer& peer) {
  Parted<Message> parted;
  for (const Message& message : messages) {
    if (message.bytes == 0) continue;
    (peer(message) == rank ? parted.own : parted.others).push_back(message);
  }
  return parted;
}

void copy_own(const Stream& stream, const std::vector<Outgoing>& out, const std::vector<Incoming>& in) {
  bool fits = out.size() == in.size();
  for (std::size_t i = 0; fits && i < out.size(); ++i) fits = out[i].bytes == in[i].bytes;
  if (!fits) throw Error("a rank's messages to itself have no place to go", "the sizes on both sides differ");
  for (std::size_t i = 0; i < out.size(); ++i) copy_on_device(stream, in[i].data, out[i].data, out[i].bytes);
}

// MPI sends from and receives into device memory, after the work queued before.
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
  constexpr std::size_t kAll = std::size_t{64} << 20;  // from all ranks at once, unless pieces have their smallest size
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

// Eight H100 on NVLink took 3.3 GB each for messages between all of them (github.com/NVIDIA/nccl/issues/1685): up to 32
// channels for each other GPU of the machine. Buffers for other machines are shared between these.
double DevicePayload::nccl_bytes(const Communicator& ranks) {
  constexpr double kAlone = 1e9, kOfPeer = 0.47e9;
  if (choose_payload_path(ranks).path != PayloadPath::kNccl || ranks.nccl()) return 0;
  return kAlone + kOfPeer * (find_machines(ranks).most_ranks - 1);
}

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

namespace {

// The paths available to one rank.
struct Facts {
  int has_nccl = 0, mpi_takes_device = 0, machine = 0;
  std::array<char, 36> device{};
};

// Of Open MPI; of MPICH and what descends from it, whose older releases end the program in MPIX_Query_cuda_support().
bool mpi_takes_device_addresses() {
#if defined(MPIX_GPU_SUPPORT_CUDA)
  int supported = 0;
  return under_mpi() && MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &supported) == MPI_SUCCESS && supported == 1;
#elif defined(MPIX_CUDA_AWARE_SUPPORT)
  return under_mpi() && MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

std::vector<Facts> gather_facts(const Communicator& ranks) {
  Facts mine;
  mine.has_nccl = !nccl_version().empty();
  mine.mpi_takes_device = mpi_takes_device_addresses();
  mine.machine = find_machines(ranks).this_one;
  std::strncpy(mine.device.data(), device_address().c_str(), mine.device.size() - 1);
  return gathered(ranks, mine);
}

// Why NCCL is unavailable; empty where it is available.
std::string reason_against_nccl(const std::vector<Facts>& all) {
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (!all[r].has_nccl) return "this build is without NCCL";
    for (std::size_t s = 0; s < r; ++s) {
      if (all[s].machine == all[r].machine && all[s].device == all[r].device) {
        return "ranks " + std::to_string(s) + " and " + std::to_string(r) + " share the GPU " + all[r].device.data();
      }
    }
  }
  return "";
}

std::string reason_against_mpi(const std::vector<Facts>& all) {
  for (const Facts& rank : all) {
    if (!rank.mpi_takes_device) return mpi_library() + " is not CUDA-aware";
  }
  return "";
}

// The value of MAKI_PAYLOAD; empty where it is not set. Some launchers (Open MPI's over ssh) set variables on the ranks
// of the first machine alone: that of the lowest rank that has one counts for all.
std::string path_asked_for(const Communicator& ranks) {
  const char* const text = std::getenv("MAKI_PAYLOAD");
  std::string asked = first_text(ranks, text ? text : "");
  if (!asked.empty() && asked != "nccl" && asked != "mpi" && asked != "staged") {
    throw Error("MAKI_PAYLOAD is '" + asked + "'", "it names no way to exchange", "use nccl, mpi or staged");
  }
  return asked;
}

}  // namespace

PayloadChoice choose_payload_path(const Communicator& ranks) {
  const std::string asked = path_asked_for(ranks);
  if (std::string(backend_name()) == "cpu") return {PayloadPath::kDirect, "device memory is host memory"};
  if (ranks.size() == 1) return {PayloadPath::kDirect, "one rank sends nothing"};
  const std::vector<Facts> all = gather_facts(ranks);
  const std::string no_nccl = reason_against_nccl(all), no_mpi = reason_against_mpi(all);
  const char* const leave = "leave it unset for the best way that there is";
  if (asked == "nccl" && !no_nccl.empty()) throw Error("MAKI_PAYLOAD asks for NCCL", no_nccl, leave);
  if (asked == "mpi" && !no_mpi.empty()) throw Error("MAKI_PAYLOAD asks for MPI between GPUs", no_mpi, leave);
  if (asked == "nccl" || (asked.empty() && no_nccl.empty())) {
    return {PayloadPath::kNccl, "each rank has a GPU of its own; NCCL " + nccl_version()};
  }
  if (asked == "mpi" || (asked.empty() && no_mpi.empty())) {
    return {PayloadPath::kDirect, mpi_library() + " is CUDA-aware" + (asked.empty() ? "; " + no_nccl : "")};
  }
  return {PayloadPath::kStaged, asked.empty() ? no_nccl + "; " + no_mpi : "MAKI_PAYLOAD asks for it"};
}

}  // namespace maki
