#include "tests/testbed/link.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/route.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/testbed/namespaces.hpp"
#include "wan/net/error.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::testbed {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kLate = 1'000'000;
constexpr int kBatch = 32;  // packets taken in before what is due goes out
// Between two looks at a link in use: waking for each packet would cost the endpoints' cores, and packets are late by
// so much at most.
constexpr std::int64_t kRest = 200'000;

std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

// Small packets take more room in memory than on the wire: hence the factor.
std::size_t ring_bytes(const LinkSettings& s, double queue) {
  const double rate = s.rate > 0 ? s.rate : 4e9;
  return static_cast<std::size_t>(2 * (rate / 8 * s.delay + queue)) + (std::size_t{4} << 20);
}

// The endpoints compete for the cores: packets have to leave on time all the same.
void take_precedence() {
  prctl(PR_SET_TIMERSLACK, 1000UL);
  prctl(PR_SET_NAME, "wan link");
  sched_param priority{};
  priority.sched_priority = 10;                                  // above endpoints that are run so too
  pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);  // where it is refused, times are a little less exact
}

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
void limit_gso(const LinkEnd& s) {
  constexpr std::uint32_t kGso = 16384;  // bytes that cross at once at most
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
  message.value = kGso;
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

void bring_up(const LinkEnd& s, const LinkEnd& peer) {
  constexpr int kDeviceQueue = 10000;  // packets: so many that the device never drops
  wan::Socket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  check(socket.descriptor(), "no socket");
  ifreq request = request_of(s);
  request.ifr_mtu = 1500;
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

Direction::Direction(int from, int to, const LinkSettings& settings, std::uint64_t seed)
    : from_(from), to_(to), settings_(settings),
      queue_limit_(settings.queue > 0 ? settings.queue : settings.default_queue()),
      nanoseconds_per_byte_(settings.rate > 0 ? 8e9 / settings.rate : 0),
      delay_(static_cast<Nanoseconds>(settings.delay * 1e9)), stop_(eventfd(0, EFD_CLOEXEC)),
      ring_(ring_bytes(settings, queue_limit_)), scratch_(kLargestPacket), random_(seed), thread_([this] { run(); }) {}

Direction::~Direction() {
  stopping_ = true;
  const std::uint64_t one = 1;
  while (write(stop_, &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
  close(stop_);
}

LinkCounters Direction::counters() const {
  return {packets_, bytes_, queue_drops_, loss_drops_, greatest_queue_, late_};
}

void Direction::run() {
  take_precedence();
  while (!stopping_) {
    const Nanoseconds began = now_ns();
    const int taken = take_in();
    const std::uint64_t first = ring_.taken_out();
    const Nanoseconds next = deliver();
    if (taken == kBatch || next == 0) continue;
    if (taken > 0 || ring_.taken_out() > first)
      rest_until(began + kRest);
    else
      wait(next);
  }
}

void Direction::rest_until(Nanoseconds time) {
  const timespec end{time / kSecond, time % kSecond};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr);
}

// An idle link answers at once.
void Direction::wait(Nanoseconds time) {
  pollfd who[] = {{from_, POLLIN, 0}, {stop_, POLLIN, 0}};
  const timespec limit{time / kSecond, time % kSecond};
  ppoll(who, 2, &limit, nullptr);
}

int Direction::take_in() {
  for (int taken = 0; taken < kBatch; ++taken) {
    std::byte* slot = ring_.reserve();
    std::byte* to = slot ? slot : scratch_.data();
    const ssize_t bytes = read(from_, to, kLargestPacket);
    if (bytes <= static_cast<ssize_t>(kVirtioBytes)) return taken;
    const std::size_t size = static_cast<std::size_t>(bytes);
    if (!slot)
      queue_drops_ += segments_of({to, size}).count;
    else
      admit(slot, size, now_ns());
  }
  return kBatch;
}

double Direction::queued(Nanoseconds now) const {
  if (nanoseconds_per_byte_ == 0 || line_free_ <= now) return 0;
  return static_cast<double>(line_free_ - now) / nanoseconds_per_byte_;
}

// A packet takes its time on the line whether or not it is lost behind it.
Direction::Fate Direction::decide(std::size_t wire_bytes, Nanoseconds now) {
  const double waiting = queued(now) + static_cast<double>(wire_bytes);
  if (nanoseconds_per_byte_ > 0 && waiting > queue_limit_) {
    ++queue_drops_;
    return {false, line_free_};
  }
  if (waiting > static_cast<double>(greatest_queue_)) greatest_queue_ = static_cast<std::uint64_t>(waiting);
  const double time = static_cast<double>(wire_bytes) * nanoseconds_per_byte_ + line_rest_;
  line_free_ = std::max(line_free_, now) + static_cast<Nanoseconds>(time);
  line_rest_ = time - std::floor(time);
  if (!lose()) return {true, line_free_};
  ++loss_drops_;
  return {false, line_free_};
}

// Draws the distance to the next loss, not a number for each packet.
bool Direction::lose() {
  const double probability = settings_.loss;
  if (probability <= 0) return false;
  if (until_loss_ < 0)
    until_loss_ = probability >= 1 ? 0 : std::geometric_distribution<std::int64_t>(probability)(random_);
  return until_loss_-- == 0;
}

void Direction::admit(std::byte* slot, std::size_t bytes, Nanoseconds now) {
  const Segments segments = segments_of({slot, bytes});
  if (segments.count > 1) {
    std::memcpy(scratch_.data(), slot, bytes);
    admit_pieces(segments, {scratch_.data(), bytes}, now);
    return;
  }
  const Fate fate = decide(segments.wire_bytes(), now);
  if (fate.arrives) ring_.commit(bytes, fate.finish + delay_, 1, static_cast<std::uint32_t>(segments.wire_bytes()));
}

// Each run of segments that arrive becomes one packet, due when its last segment is through.
void Direction::admit_pieces(const Segments& segments, std::span<const std::byte> packet, Nanoseconds now) {
  std::size_t first = 0, wire = 0;
  Nanoseconds finish = 0;
  const auto commit = [&](std::size_t last) {
    if (last == first) return;
    std::byte* slot = ring_.reserve();
    if (!slot) {
      queue_drops_ += last - first;
      return;
    }
    std::size_t bytes = packet.size();
    if (last - first == segments.count)
      std::memcpy(slot, packet.data(), bytes);
    else
      bytes = write_segments(packet, segments, first, last, slot);
    ring_.commit(bytes, finish + delay_, static_cast<std::uint32_t>(last - first), static_cast<std::uint32_t>(wire));
  };
  for (std::size_t i = 0; i < segments.count; ++i) {
    const Fate fate = decide(segments.wire_bytes(i), now);
    if (fate.arrives) {
      finish = fate.finish;
      wire += segments.wire_bytes(i);
      continue;
    }
    commit(i);
    first = i + 1;
    wire = 0;
  }
  commit(segments.count);
}

Direction::Nanoseconds Direction::deliver() {
  Nanoseconds now = now_ns();
  for (int sent = 0; !ring_.empty(); ++sent) {
    const PacketRing::Packet& packet = ring_.front();
    if (packet.release > now) return packet.release - now;
    if (sent == kBatch) return 0;
    const std::span<const std::byte> bytes = ring_.front_bytes();
    if (write(to_, bytes.data(), bytes.size()) > 0) {
      packets_ += packet.segments;
      bytes_ += packet.wire_bytes;
      if (now - packet.release > kLate) late_ += packet.segments;
    }
    ring_.pop();
    now = now_ns();
  }
  return kSecond;
}

// ---- two directions --------------------------------------------------------------------------------------------------

double LinkSettings::default_queue() const { return std::max(2e6, rate / 8 * delay); }

EmulatedLink::EmulatedLink(const LinkEnd& a, const LinkEnd& b, const LinkSettings& settings)
    : a_(open_tun(a, b)), b_(open_tun(b, a)),
      forth_(std::make_unique<Direction>(a_.descriptor(), b_.descriptor(), settings, 2 * settings.seed)),
      back_(std::make_unique<Direction>(b_.descriptor(), a_.descriptor(), settings, 2 * settings.seed + 1)) {}

wan::Socket open_tun(const LinkEnd& own, const LinkEnd& other) {
  const InsideNamespace inside(own.space);
  wan::Socket tun(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  check(tun.descriptor(), "/dev/net/tun does not open");
  ifreq request = request_of(own);
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  check(ioctl(tun.descriptor(), TUNSETIFF, &request), "the TUN device " + own.device + " cannot be made");
  const unsigned offloads = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
  check(ioctl(tun.descriptor(), TUNSETOFFLOAD, offloads), "the TUN device " + own.device + " takes no offloads");
  limit_gso(own);
  bring_up(own, other);
  return tun;
}

}  // namespace maki::testbed
