// A TUN device inside a namespace, with addresses and offloads.
#pragma once

#include <string>

namespace maki::testbed {

struct TunSettings {
  std::string device;                 // at most 15 characters
  std::string address, peer_address;  // IPv4, of this end and of the other one: a route to the peer follows
  std::string address6, peer_address6;
  int mtu = 1500;
  int gso = 16384;           // bytes of the largest super-packet of several segments; 0: none, every packet alone
  int device_queue = 10000;  // packets: so many that the device never drops
};

// Makes the device in the calling thread's namespace and brings it up. The descriptor does not block; each packet on it
// begins with a virtio_net_hdr. The device lives as long as the descriptor.
int open_tun(const TunSettings& settings);

}  // namespace maki::testbed
