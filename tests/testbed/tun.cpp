#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/route.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "tests/testbed/link.hpp"
#include "tests/testbed/namespaces.hpp"
#include "wan/net/error.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::testbed {
namespace {

// <linux/ipv6.h> and <netinet/in.h> do not go together.
struct Address6Request {
  in6_addr address;
  std::uint32_t prefix;
  int device;
};

void check(int status, const std::string& what) {
  if (status < 0) throw wan::Error(what, std::strerror(errno));
}

ifreq request_of(const LinkEnd& s) {
  ifreq request{};
  std::strncpy(request.ifr_name, s.device.c_str(), IFNAMSIZ - 1);
  return request;
}

void set_address4(int socket, const LinkEnd& s, const LinkEnd& peer) {
  const auto call = [&](unsigned long what, const std::string& text) {
    ifreq request = request_of(s);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    check(inet_pton(AF_INET, text.c_str(), &address.sin_addr) == 1 ? 0 : -1, text + " is no IPv4 address");
    std::memcpy(&request.ifr_addr, &address, sizeof address);
    check(ioctl(socket, what, &request), "the address " + text + " cannot be set on " + s.device);
  };
  call(SIOCSIFADDR, s.address);
  call(SIOCSIFDSTADDR, peer.address);  // a route to the peer follows
}

in6_addr parse6(const std::string& text) {
  in6_addr address{};
  check(inet_pton(AF_INET6, text.c_str(), &address) == 1 ? 0 : -1, text + " is no IPv6 address");
  return address;
}

void set_address6(const LinkEnd& s, const LinkEnd& peer) {
  const int socket = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return;  // a kernel without IPv6
  const int device = static_cast<int>(if_nametoindex(s.device.c_str()));
  Address6Request own{parse6(s.address6), 128, device};
  int status = ioctl(socket, SIOCSIFADDR, &own);
  if (status == 0) {
    in6_rtmsg route{};
    route.rtmsg_dst = parse6(peer.address6);
    route.rtmsg_dst_len = 128;
    route.rtmsg_metric = 1;
    route.rtmsg_flags = RTF_UP;
    route.rtmsg_ifindex = device;
    status = ioctl(socket, SIOCADDRT, &route);
  }
  close(socket);
  check(status, "the address " + s.address6 + " cannot be set on " + s.device);
}

// Large super-packets would make the emulated line coarse: nothing of one arrives before its last segment.
void limit_gso(const LinkEnd& s, int bytes) {
  struct {
    nlmsghdr header{};
    ifinfomsg link{};
    rtattr attribute{};
    std::uint32_t value = 0;
  } message;
  message.header.nlmsg_len = sizeof message;
  message.header.nlmsg_type = RTM_NEWLINK;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  message.link.ifi_index = static_cast<int>(if_nametoindex(s.device.c_str()));
  message.attribute.rta_type = IFLA_GSO_MAX_SIZE;
  message.attribute.rta_len = RTA_LENGTH(sizeof message.value);
  message.value = static_cast<std::uint32_t>(bytes);
  struct {
    nlmsghdr header;
    nlmsgerr error;
    char rest[512];
  } answer{};
  wan::Socket socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  check(socket.descriptor(), "no netlink socket");
  check(static_cast<int>(send(socket.descriptor(), &message, sizeof message, 0)), "netlink takes no message");
  check(static_cast<int>(recv(socket.descriptor(), &answer, sizeof answer, 0)), "netlink does not answer");
  errno = -answer.error.error;
  check(answer.error.error == 0 ? 0 : -1, "super-packets of " + s.device + " cannot be bounded");
}

void bring_up(const LinkEnd& s, const LinkEnd& peer, int mtu) {
  constexpr int kDeviceQueue = 10000;  // packets: so many that the device never drops
  wan::Socket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  check(socket.descriptor(), "no socket");
  ifreq request = request_of(s);
  request.ifr_mtu = mtu;
  check(ioctl(socket.descriptor(), SIOCSIFMTU, &request), "the MTU cannot be set on " + s.device);
  request = request_of(s);
  request.ifr_qlen = kDeviceQueue;
  check(ioctl(socket.descriptor(), SIOCSIFTXQLEN, &request), "the queue cannot be set on " + s.device);
  set_address4(socket.descriptor(), s, peer);
  request = request_of(s);
  request.ifr_flags = IFF_UP | IFF_RUNNING | IFF_POINTOPOINT | IFF_NOARP;
  check(ioctl(socket.descriptor(), SIOCSIFFLAGS, &request), s.device + " does not come up");
  if (!s.address6.empty()) set_address6(s, peer);
}

}  // namespace

wan::Socket open_tun(const LinkEnd& own, const LinkEnd& other, const LinkSettings& settings) {
  const InsideNamespace inside(own.space);
  wan::Socket tun(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  check(tun.descriptor(), "/dev/net/tun does not open");
  ifreq request = request_of(own);
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  check(ioctl(tun.descriptor(), TUNSETIFF, &request), "the TUN device " + own.device + " cannot be made");
  // Without offloads the sender's kernel fills in every checksum and the receiver's verifies it.
  const unsigned offloads = settings.gso > 0 ? TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN : 0;
  check(ioctl(tun.descriptor(), TUNSETOFFLOAD, offloads), "the TUN device " + own.device + " takes no offloads");
  if (settings.gso > 0) limit_gso(own, settings.gso);
  bring_up(own, other, settings.mtu);
  return tun;
}

}  // namespace maki::testbed
