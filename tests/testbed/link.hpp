// A wide-area link between two network namespaces of this machine: TCP on both sides sees a real round trip.
//
// Each direction on its own: packets wait in a queue of bounded bytes (what does not fit is dropped), cross a line of a given
// rate, are lost by chance, and arrive a delay later, in order. Rates and queues count the bytes of IP packets, each
// segment of a super-packet with headers of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace maki::testbed {

struct LinkSettings {
  double delay = 0.135;    // seconds, one way
  double rate = 800e6;     // bits of IP packets a second; 0: without bound
  double queue = 0;        // bytes before the line; 0: default_queue()
  double loss = 0;         // probability of a packet
  double jitter = 0;       // seconds: each packet is up to so much later, none overtakes another
  std::uint64_t seed = 1;  // of loss and jitter
  int mtu = 1500;
  int gso =
      16384;  // bytes that cross at once at most, as segments of the MTU; 0: each packet alone, checksums filled in
  double default_queue() const;  // half of what the link holds in a round trip, at least 2 MB
};

// One end: a namespace, the device made in it, and its addresses.
struct LinkEnd {
  std::string space, device, address, address6;
};

// What one direction has done. Packets and bytes are those of the wire.
struct LinkCounters {
  std::uint64_t packets = 0, bytes = 0;                          // delivered
  std::uint64_t queue_drops = 0, loss_drops = 0, cut_drops = 0;  // packets
  std::uint64_t greatest_queue = 0;                              // bytes
  std::uint64_t late = 0;  // packets that the emulator delivered more than 1 ms after their time
};

class EmulatedLink {
 public:
  // Runs at once, with one thread a direction. Throws wan::Error where there is no root or TUN (see why_not()).
  EmulatedLink(const LinkEnd& a, const LinkEnd& b, const LinkSettings& settings);
  ~EmulatedLink();
  EmulatedLink(EmulatedLink&&) noexcept;

  void cut();  // all packets are lost, those under way too
  void restore();
  void set_loss(double probability);  // while it runs
  bool is_cut() const;
  LinkCounters forth() const;  // from a to b
  LinkCounters back() const;

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace maki::testbed
