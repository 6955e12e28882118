// One direction of an emulated link: a thread that takes packets from one TUN device and puts them into another.
#pragma once

#include <atomic>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "tests/testbed/link.hpp"
#include "tests/testbed/packet.hpp"
#include "tests/testbed/packet_ring.hpp"

namespace maki::testbed {

class Direction {
 public:
  // The descriptors stay the caller's, and open while this lives.
  Direction(int from, int to, const LinkSettings& settings, std::uint64_t seed);
  ~Direction();
  Direction(const Direction&) = delete;

  void set_cut(bool cut) { cut_ = cut; }
  bool is_cut() const { return cut_; }
  void set_loss(double probability) { loss_ = probability; }
  LinkCounters counters() const;

 private:
  using Nanoseconds = std::int64_t;
  struct Fate {
    bool arrives;
    Nanoseconds finish;  // on the line
  };

  void run();
  int take_in();          // packets read
  Nanoseconds deliver();  // what is due; how long until the next is (a second where none waits)
  void wait(Nanoseconds time);
  void rest_until(Nanoseconds time);
  void admit(std::byte* slot, std::size_t bytes, Nanoseconds now);
  void admit_pieces(const Segments& segments, std::span<const std::byte> packet, Nanoseconds now);
  bool all_fit(const Segments& segments, Nanoseconds now) const;
  Fate decide(std::size_t wire_bytes, Nanoseconds now);
  bool lose();
  Nanoseconds release_of(Nanoseconds finish);
  double queued(Nanoseconds now) const;

  const int from_, to_;
  const LinkSettings settings_;
  const double queue_limit_, nanoseconds_per_byte_;
  const Nanoseconds delay_;
  int stop_ = -1;  // eventfd
  PacketRing ring_;
  std::vector<std::byte> scratch_;
  std::mt19937_64 random_;
  Nanoseconds line_free_ = 0;  // when the line has sent all that was admitted
  double line_rest_ = 0;       // fractions of a nanosecond that line_free_ leaves out
  Nanoseconds last_release_ = 0;
  double loss_now_ = -1;         // the probability that until_loss_ was drawn for
  std::int64_t until_loss_ = 0;  // packets before the next one lost

  std::atomic<bool> cut_{false}, stopping_{false};
  std::atomic<double> loss_;
  std::atomic<std::uint64_t> packets_{0}, bytes_{0}, queue_drops_{0}, loss_drops_{0}, cut_drops_{0}, greatest_queue_{0},
      late_{0};
  std::thread thread_;
};

}  // namespace maki::testbed
