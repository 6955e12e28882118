// For tests of attacks: a service that echoes, its honest users, and peers that hold a key and misuse it.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <thread>
#include <vector>

#include "tests/wan/net/secure/channel_pair.hpp"
#include "wan/net/error.hpp"
#include "wan/net/listener.hpp"
#include "wan/net/path/wire.hpp"

namespace maki::wan::test {

inline constexpr Tag kEcho = 1;
inline constexpr std::size_t kLongestEcho = 1 << 20;

inline bool wait_for_status(const Channel& channel, IoStatus status, double seconds = 30) {
  return ready(channel.descriptor(), status == IoStatus::kWantWrite ? POLLOUT : POLLIN,
               static_cast<int>(seconds * 1000));
}

// Takes paths in and echoes what comes with tag 1.
class Service {
 public:
  explicit Service(const Security& security, const ListenerLimits& limits = {}, const PathSettings& settings = {})
      : listener_({"127.0.0.1", 0}, security, settings, limits), thread_([this] { serve(); }) {}
  ~Service() {
    stop_ = true;
    thread_.join();
    for (Path& path : paths_) path.close(0.1);  // which ends its echo
  }
  Endpoint address() const { return listener_.address(); }

 private:
  void serve() {
    while (!stop_)
      if (auto accepted = listener_.accept_for(0.002))
        echoes_.emplace_back(echo, std::ref(paths_.emplace_back(std::move(accepted->path))));
  }
  static void echo(Path& path) try {
    for (;;) path.send(kEcho, path.receive_any(kEcho, kLongestEcho).view());
  } catch (const Error&) {  // that path is over
    path.close(0);
  }

  Listener listener_;
  std::atomic<bool> stop_{false};
  std::list<Path> paths_;
  std::vector<std::jthread> echoes_;
  std::thread thread_;
};

inline Path connect(const Endpoint& to, const Security& security) {
  PathSettings settings = streams(2);
  settings.patience = 60;
  return Path::connect(to, security, settings, {"honest"});
}
inline Path connect(const Service& service, const Security& security) { return connect(service.address(), security); }

// A message there and back, the same.
inline void expect_echo(Path& path) {
  const auto message = pattern(100000, 7);
  path.send(kEcho, message);
  const Bytes back = path.receive_any(kEcho, kLongestEcho);
  EXPECT_TRUE(same(message, back.view()));
}

// Of listeners to streams made by hand, which give no sign of life.
inline PathSettings patient() {
  PathSettings settings;
  settings.stream_timeout = 300;
  return settings;
}

// One stream by hand, of either side; all calls wait, but not for ever.
class HandMadeStream {
 public:
  explicit HandMadeStream(const Endpoint& to, const Security& security = insecure())
      : channel_(make_channel(SecurityContext::make(security), connect_now(to), Side::kConnecting, to.host)) {
    shake_hands();
  }
  explicit HandMadeStream(Socket accepted, const Security& security = insecure())
      : channel_(make_channel(SecurityContext::make(security), std::move(accepted), Side::kListening)) {
    shake_hands();
  }
  Welcome greet(const Hello& hello) {
    send(encode(hello));
    return welcome();
  }
  Welcome welcome() { return decode_welcome(read<kWelcomeBytes>()); }
  // Of the side that accepted.
  Hello hear() { return decode_hello(read<kHelloBytes>()); }
  void send(const std::string& text) { send(std::as_bytes(std::span(text))); }
  void send(std::span<const std::byte> bytes) {
    while (true) {
      const IoResult result = channel_->write({}, bytes);
      bytes = bytes.subspan(result.bytes);
      if (result.status == IoStatus::kDone && channel_->flush() == IoStatus::kDone) return;
      if (result.status == IoStatus::kClosed || !wait_for_status(*channel_, IoStatus::kWantWrite)) return;
    }
  }
  void send(const Frame& frame, std::span<const std::byte> payload = {}) {
    Frame stamped = frame;
    if (!channel_->encrypted()) stamped.checksum = checksum(payload);
    send(encode(stamped));
    send(payload);
  }
  // Sends the frame with its sizes as they are given, whatever encode() says of them, and its checksum right.
  void send_unchecked(const Frame& frame) {
    auto bytes = encode(Frame{});
    const auto type = static_cast<std::uint16_t>(frame.type);
    std::memcpy(bytes.data() + 2, &type, 2);
    std::memcpy(bytes.data() + 4, &frame.length, 4);
    const std::uint64_t words[] = {frame.sequence, frame.tag, frame.index, frame.total, frame.offset, frame.checksum};
    std::memcpy(bytes.data() + 8, words, sizeof words);
    const std::uint64_t check = checksum(std::span(bytes).first(kFrameBytes - 8));
    std::memcpy(bytes.data() + kFrameBytes - 8, &check, 8);
    send(bytes);
  }
  // Reads what is there; false where the other side has closed.
  bool drain() try {
    std::array<std::byte, 1 << 14> buffer;
    IoResult result;
    while ((result = channel_->read(buffer)).bytes > 0) {
    }
    return result.status != IoStatus::kClosed;
  } catch (const SecurityError&) {
    return false;
  }
  template <std::size_t size>
  std::array<std::byte, size> read() {
    std::array<std::byte, size> bytes;
    for (std::span<std::byte> left = bytes; !left.empty();) {
      const IoResult result = channel_->read(left);
      left = left.subspan(result.bytes);
      if (result.status == IoStatus::kClosed || (result.bytes == 0 && !wait_for_status(*channel_, result.status)))
        throw Error("no greeting for the test");
    }
    return bytes;
  }
  void close() { channel_.reset(); }
  bool quiet(int milliseconds) const { return !ready(channel_->descriptor(), POLLIN, milliseconds); }
  // Reads frames until the other side closes; false where it does not.
  bool closed_by_peer() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (drain()) {
      if (std::chrono::steady_clock::now() > end) return false;
      wait_for_status(*channel_, IoStatus::kWantRead, 0.1);
    }
    return true;
  }

 private:
  void shake_hands() {
    for (IoStatus status; (status = channel_->handshake()) != IoStatus::kDone;)
      if (status == IoStatus::kClosed || !wait_for_status(*channel_, status)) throw Error("no handshake for the test");
  }
  std::unique_ptr<Channel> channel_;
};

}  // namespace maki::wan::test
