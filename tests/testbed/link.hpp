// A wide-area link between two network namespaces of this machine: TCP on both sides sees a real round trip.
//
// Each direction on its own: packets wait in a queue of bounded bytes (what does not fit is dropped), cross a line of a
// given rate, are lost by chance, and arrive a delay later, in order. Rates and queues count the bytes of IP packets.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "wan/net/socket/tcp.hpp"

namespace maki::testbed {

inline constexpr int kMtu = 1500;

struct LinkSettings {
  double delay = 0.135;          // seconds, one way
  double rate = 800e6;           // bits of IP packets a second; 0: without bound
  double queue = 0;              // bytes before the line; 0: default_queue()
  double loss = 0;               // probability of a packet
  std::uint64_t seed = 1;        // of loss
  double default_queue() const;  // half of what the link holds in a round trip, at least 2 MB
};

// One end: a namespace, the device made in it, and its addresses.
struct LinkEnd {
  std::string space, device;  // the latter at most 15 characters
  std::string address, address6;
};

// What one direction has done.
struct LinkCounters {
  std::uint64_t packets = 0, bytes = 0;           // delivered
  std::uint64_t queue_drops = 0, loss_drops = 0;  // packets
  std::uint64_t greatest_queue = 0;               // bytes
  std::uint64_t late = 0;                         // packets that the emulator delivered more than 1 ms after their time
};

// One direction: a thread that takes packets from one TUN device and puts them into another.
class Direction {
 public:
  // The descriptors stay the caller's, and open while this lives.
  Direction(int from, int to, const LinkSettings& settings, std::uint64_t seed);
  ~Direction();
  Direction(const Direction&) = delete;

  LinkCounters counters() const;

 private:
  using Nanoseconds = std::int64_t;
  struct Packet {
    Nanoseconds arrival = 0;
    std::size_t size = 0;
    std::array<std::byte, kMtu> bytes;
  };

  void run();
  int take_in();          // packets read
  Nanoseconds deliver();  // what is due; how long until the next is (a second where none waits)
  void wait(Nanoseconds time);
  void rest_until(Nanoseconds time);
  bool admit(Packet& packet, Nanoseconds now);  // false: dropped or lost
  bool lose();
  double queued(Nanoseconds now) const;

  const int from_, to_;
  const LinkSettings settings_;
  const double queue_limit_, nanoseconds_per_byte_;
  const Nanoseconds delay_;
  const wan::Descriptor stop_;  // eventfd
  std::deque<Packet> under_way_;
  Packet next_;
  std::mt19937_64 random_;
  Nanoseconds line_free_ = 0;     // when the line has sent all that was admitted
  double line_rest_ = 0;          // fractions of a nanosecond that line_free_ leaves out
  std::int64_t until_loss_ = -1;  // packets before the next one lost; -1: not drawn

  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> packets_{0}, bytes_{0}, queue_drops_{0}, loss_drops_{0}, greatest_queue_{0}, late_{0};
  std::thread thread_;
};

class EmulatedLink {
 public:
  // Runs at once, with one thread a direction. Throws wan::Error where there is no root or TUN (see why_not()).
  EmulatedLink(const LinkEnd& a, const LinkEnd& b, const LinkSettings& settings);

  LinkCounters forth() const { return forth_->counters(); }  // from a to b
  LinkCounters back() const { return back_->counters(); }

 private:
  wan::Socket a_, b_;  // the devices
  std::unique_ptr<Direction> forth_, back_;
};

}  // namespace maki::testbed
