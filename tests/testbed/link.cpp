#include "tests/testbed/link.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
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
  const wan::Socket socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.open()) return;  // a kernel without IPv6
  const int device = static_cast<int>(if_nametoindex(s.device.c_str()));
  Address6Request own{parse6(s.address6), 128, device};
  int status = ioctl(socket.descriptor(), SIOCSIFADDR, &own);
  if (status == 0) {
    in6_rtmsg route{};
    route.rtmsg_dst = parse6(peer.address6);
    route.rtmsg_dst_len = 128;
    route.rtmsg_metric = 1;
    route.rtmsg_flags = RTF_UP;
    route.rtmsg_ifindex = device;
    status = ioctl(socket.descriptor(), SIOCADDRT, &route);
  }
  check(status, "the address " + s.address6 + " cannot be set on " + s.device);
}

void bring_up(const LinkEnd& s, const LinkEnd& peer) {
  constexpr int kDeviceQueue = 50000;  // packets: so many that the device never drops
  wan::Socket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  check(socket.descriptor(), "no socket");
  ifreq request = request_of(s);
  request.ifr_mtu = kMtu;
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

// Makes the TUN device of an end in its namespace and brings it up. The descriptor does not block. The device lives as
// long as the descriptor.
wan::Socket open_tun(const LinkEnd& own, const LinkEnd& other) {
  const InsideNamespace inside(own.space);
  wan::Socket tun(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  check(tun.descriptor(), "/dev/net/tun does not open");
  ifreq request = request_of(own);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  check(ioctl(tun.descriptor(), TUNSETIFF, &request), "the TUN device " + own.device + " cannot be made");
  bring_up(own, other);
  return tun;
}

}  // namespace

Direction::Direction(int from, int to, const LinkSettings& settings, std::uint64_t seed)
    : from_(from), to_(to), settings_(settings),
      queue_limit_(settings.queue > 0 ? settings.queue : settings.default_queue()),
      nanoseconds_per_byte_(settings.rate > 0 ? 8e9 / settings.rate : 0),
      delay_(static_cast<Nanoseconds>(settings.delay * 1e9)), stop_(eventfd(0, EFD_CLOEXEC)), random_(seed),
      thread_([this] { run(); }) {}

Direction::~Direction() {
  stopping_ = true;
  const std::uint64_t one = 1;
  while (write(stop_.descriptor(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
}

LinkCounters Direction::counters() const {
  return {packets_, bytes_, queue_drops_, loss_drops_, greatest_queue_, late_};
}

void Direction::run() {
  take_precedence();
  while (!stopping_) {
    const Nanoseconds began = now_ns();
    const int taken = take_in();
    const std::size_t waiting = under_way_.size();
    const Nanoseconds next = deliver();
    if (taken == kBatch || next == 0) continue;
    if (taken > 0 || under_way_.size() < waiting)
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
  pollfd who[] = {{from_, POLLIN, 0}, {stop_.descriptor(), POLLIN, 0}};
  const timespec limit{time / kSecond, time % kSecond};
  ppoll(who, 2, &limit, nullptr);
}

int Direction::take_in() {
  for (int taken = 0; taken < kBatch; ++taken) {
    const ssize_t size = read(from_, next_.bytes.data(), next_.bytes.size());
    if (size <= 0) return taken;
    next_.size = static_cast<std::size_t>(size);
    if (admit(next_, now_ns())) under_way_.push_back(next_);
  }
  return kBatch;
}

double Direction::queued(Nanoseconds now) const {
  if (nanoseconds_per_byte_ == 0 || line_free_ <= now) return 0;
  return static_cast<double>(line_free_ - now) / nanoseconds_per_byte_;
}

// A packet takes its time on the line whether or not it is lost behind it.
bool Direction::admit(Packet& packet, Nanoseconds now) {
  const double size = static_cast<double>(packet.size), waiting = queued(now) + size;
  if (nanoseconds_per_byte_ > 0 && waiting > queue_limit_) {
    ++queue_drops_;
    return false;
  }
  if (waiting > static_cast<double>(greatest_queue_)) greatest_queue_ = static_cast<std::uint64_t>(waiting);
  const double time = size * nanoseconds_per_byte_ + line_rest_;
  line_free_ = std::max(line_free_, now) + static_cast<Nanoseconds>(time);
  line_rest_ = time - std::floor(time);
  packet.arrival = line_free_ + delay_;
  if (!lose()) return true;
  ++loss_drops_;
  return false;
}

// Draws the distance to the next loss, not a number for each packet.
bool Direction::lose() {
  const double probability = settings_.loss;
  if (probability <= 0) return false;
  if (until_loss_ < 0)
    until_loss_ = probability >= 1 ? 0 : std::geometric_distribution<std::int64_t>(probability)(random_);
  return until_loss_-- == 0;
}

Direction::Nanoseconds Direction::deliver() {
  Nanoseconds now = now_ns();
  for (int sent = 0; !under_way_.empty(); ++sent) {
    const Packet& packet = under_way_.front();
    if (packet.arrival > now) return packet.arrival - now;
    if (sent == kBatch) return 0;
    if (write(to_, packet.bytes.data(), packet.size) > 0) {
      bytes_ += packet.size;
      ++packets_;  // whoever reads it finds the bytes too
      if (now - packet.arrival > kLate) ++late_;
    }
    under_way_.pop_front();
    now = now_ns();
  }
  return kSecond;
}

// ---- two directions -------------------------------------------------------------------------------------------------

double LinkSettings::default_queue() const { return std::max(2e6, rate / 8 * delay); }

EmulatedLink::EmulatedLink(const LinkEnd& a, const LinkEnd& b, const LinkSettings& settings)
    : a_(open_tun(a, b)), b_(open_tun(b, a)),
      forth_(std::make_unique<Direction>(a_.descriptor(), b_.descriptor(), settings, 2 * settings.seed)),
      back_(std::make_unique<Direction>(b_.descriptor(), a_.descriptor(), settings, 2 * settings.seed + 1)) {}

}  // namespace maki::testbed
