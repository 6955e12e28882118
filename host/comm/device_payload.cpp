#include "host/comm/device_payload.hpp"

#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include <vector>

#include "host/comm/job.hpp"
#include "kernels/device/device.hpp"
#include "kernels/device/error.hpp"
#include "kernels/device/memory.hpp"

namespace maki {
namespace {

using Outgoing = Communicator::Outgoing;
using Incoming = Communicator::Incoming;

// Those to or from other ranks, and the rank's own apart.
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

}  // namespace

PayloadChoice choose_payload_path() {
  if (std::string(backend_name()) == "cpu") return {PayloadPath::kDirect, "device memory is host memory"};
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  if (under_mpi() && MPIX_Query_cuda_support() == 1) return {PayloadPath::kDirect, mpi_library() + " is CUDA-aware"};
#endif
  return {PayloadPath::kStaged, mpi_library() + " is not CUDA-aware"};
}

DevicePayload::DevicePayload(const Communicator& ranks, PayloadPath path) : ranks_(ranks), path_(path) {}

void DevicePayload::exchange(const Stream& stream, std::span<const Outgoing> out, std::span<const Incoming> in,
                             int tag) {
  auto sent = part(out, ranks_.rank(), [](const Outgoing& message) { return message.to; });
  auto received = part(in, ranks_.rank(), [](const Incoming& message) { return message.from; });
  copy_own(stream, sent.own, received.own);
  if (sent.others.empty() && received.others.empty()) return;
  traffic_.messages += sent.others.size();
  traffic_.bytes += sent.bytes;
  if (path_ == PayloadPath::kDirect) {
    stream.synchronize();
    ranks_.exchange(sent.others, received.others, tag);
    return;
  }
  staging_.reserve(sent.bytes + received.bytes);
  char* at = staging_.data();
  for (Outgoing& message : sent.others) {
    copy_to_host(stream, at, message.data, message.bytes);
    message.data = at;
    at += message.bytes;
  }
  std::vector<Incoming> staged = received.others;
  for (Incoming& message : staged) {
    message.data = at;
    at += message.bytes;
  }
  ranks_.exchange(sent.others, staged, tag);
  for (std::size_t i = 0; i < staged.size(); ++i) {
    copy_to_device(stream, received.others[i].data, staged[i].data, staged[i].bytes);
  }
  stream.synchronize();  // the next exchange writes to the staging memory
}

}  // namespace maki
