// Messages from device memory to device memory of another rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "host/comm/communicator.hpp"
#include "kernels/device/pinned.hpp"
#include "kernels/device/stream.hpp"

namespace maki {

enum class PayloadPath {
  kDirect,  // MPI is given device addresses: a CUDA-aware library, or device memory that is host memory
  kStaged,  // by page-locked host memory
};

// What this build and this MPI library can do, and why: for the log.
struct PayloadChoice {
  PayloadPath path;
  std::string reason;
};
PayloadChoice choose_payload_path();

// Exchanges as those of the communicator, with addresses in device memory. Keeps its staging memory from one exchange
// to the next: as much as the messages of the largest.
class DevicePayload {
 public:
  explicit DevicePayload(const Communicator& ranks, PayloadPath path = choose_payload_path().path);

  const Communicator& ranks() const { return ranks_; }

  // Waits for the work queued on `stream`, which makes what is sent; what is received is there for work queued on it
  // afterwards. A rank's messages to itself are copied on the device, in the order of the lists. Ranks that have neither
  // to send nor to receive need not call.
  void exchange(const Stream& stream, std::span<const Communicator::Outgoing> out,
                std::span<const Communicator::Incoming> in, int tag = 0);

  // Sent to other ranks by this object so far; none of them is empty.
  struct Traffic {
    std::uint64_t messages = 0, bytes = 0;
  };
  Traffic traffic() const { return traffic_; }
  std::size_t bytes() const { return staging_.capacity(); }  // of host memory

 private:
  Communicator ranks_;
  PayloadPath path_;
  PinnedBuffer staging_;
  Traffic traffic_;
};

}  // namespace maki
