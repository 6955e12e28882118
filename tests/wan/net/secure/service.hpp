// For tests of attacks: a service that echoes, its honest users, and peers that hold a key and misuse it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/wan/net/secure/channel_pair.hpp"
#include "wan/net/listener.hpp"
#include "wan/net/path/wire.hpp"

namespace maki::wan::test {

// Takes paths in and echoes what comes with tag 1.
class Service {
 public:
  explicit Service(const Security& security, const ListenerLimits& limits = {}, const PathSettings& settings = {});
  ~Service();
  Endpoint address() const { return listener_.address(); }

 private:
  void serve();
  void echo();

  Listener listener_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::vector<Path> paths_;
  std::vector<std::pair<std::size_t, Request>> receives_;
  std::thread thread_;
};

Path connect(const Service& service, const Security& security);
// A message there and back, the same.
void expect_echo(Path& path);

// One stream by hand, of either side; all calls wait, but not for ever.
class HandMadeStream {
 public:
  HandMadeStream(const Endpoint& to, const Security& security);
  HandMadeStream(Socket accepted, const Security& security);
  Welcome greet(const Hello& hello);
  Hello hear();  // of the side that accepted
  void send(std::span<const std::byte> bytes);
  void send(const Frame& frame, std::span<const std::byte> payload = {});
  // Sends the frame with its sizes as they are given, whatever encode() says of them, and its checksum right.
  void send_unchecked(const Frame& frame);
  // Reads what is there; false where the other side has closed.
  bool drain();
  // Reads frames until the other side closes; false where it does not.
  bool closed_by_peer();

 private:
  void shake_hands();
  void read(std::span<std::byte> bytes);
  std::unique_ptr<Channel> channel_;
};

}  // namespace maki::wan::test
