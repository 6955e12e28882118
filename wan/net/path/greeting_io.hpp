// Bytes of a fixed number, sent or received over a channel whenever its socket is ready: what a greeting consists of.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "wan/net/secure/channel.hpp"

namespace maki::wan {

class Outgoing {
 public:
  Outgoing() = default;
  explicit Outgoing(std::span<const std::byte> bytes) : bytes_(bytes.begin(), bytes.end()) {}

  // kDone: the kernel has all of it.
  IoStatus progress(Channel& channel) {
    while (sent_ < bytes_.size()) {
      const IoResult result = channel.write(std::span(bytes_).subspan(sent_), {});
      sent_ += result.bytes;
      if (result.status != IoStatus::kDone) return result.status;
    }
    return channel.flush();
  }

 private:
  std::vector<std::byte> bytes_;
  std::size_t sent_ = 0;
};

template <std::size_t N>
class Incoming {
 public:
  // Reads not one byte more.
  IoStatus progress(Channel& channel) {
    while (received_ < N) {
      const IoResult result = channel.read(std::span(bytes_).subspan(received_));
      received_ += result.bytes;
      if (result.status != IoStatus::kDone) return result.status;
      if (result.bytes == 0) return IoStatus::kClosed;
    }
    return IoStatus::kDone;
  }
  const std::array<std::byte, N>& bytes() const { return bytes_; }

 private:
  std::array<std::byte, N> bytes_{};
  std::size_t received_ = 0;
};

}  // namespace maki::wan
