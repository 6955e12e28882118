// Messages that stand in device memory: sent from where they are on the CPU, by way of host memory beside a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "host/comm/communicator.hpp"
#include "kernels/device/stream.hpp"

namespace maki {

class DeviceMessages {
 public:
  explicit DeviceMessages(const Communicator& communicator);

  const Communicator& communicator() const { return communicator_; }

  // As Communicator::exchange(), of what the stream has made ready before; the stream's later work sees what came. None
  // is to be empty or to go to this rank itself. Ranks that have neither to send nor to receive need not call.
  void exchange(const Stream& stream, std::span<const Communicator::Outgoing> out,
                std::span<const Communicator::Incoming> in, int tag);

  // Sent by this object so far.
  struct Traffic {
    std::uint64_t messages = 0, bytes = 0;
  };
  Traffic traffic() const { return traffic_; }
  std::size_t bytes() const { return out_.capacity() + in_.capacity(); }  // of host memory

 private:
  Communicator communicator_;
  std::vector<char> out_, in_;
  Traffic traffic_;
};

}  // namespace maki
