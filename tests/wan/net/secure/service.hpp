// For tests of attacks: a service that echoes, its honest users, and peers that hold a key and misuse it.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/wan/net/secure/channel_pair.hpp"
#include "wan/net/listener.hpp"
#include "wan/net/path/wire.hpp"

namespace maki::wan::test {

// What the library logged while this lives.
class Log {
 public:
  Log();
  ~Log();
  bool has(const std::string& part);
  bool wait_for(const std::string& part, double seconds = 30);

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

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

// Waits for it, 40 s at most.
template <class Condition>
bool comes_true(Condition condition) {
  for (int i = 0; i < 4000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// How many descriptors this process has open.
int open_descriptors();
// Waits until there are no more than so many.
bool descriptors_come_down_to(int count, double seconds = 60);

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

Hello hello(std::uint32_t stream, std::uint32_t epoch, const SessionId& session = {});

}  // namespace maki::wan::test
