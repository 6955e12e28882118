// Site 1 of a measurement, and a relay on the way to it.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <random>

#include "tests/testbed/measure.hpp"
#include "tests/testbed/namespaces.hpp"
#include "wan/net/error.hpp"
#include "wan/net/listener.hpp"
#include "wan/net/relay/relay.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::testbed {

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double cpu_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void wait_until(double time) {
  const double whole = std::floor(time);
  const timespec t{static_cast<time_t>(whole), static_cast<long>((time - whole) * 1e9)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
}

Payload::Payload(std::size_t bytes) : bytes_((bytes + 7) / 8 * 8) {
  std::mt19937_64 random(5);
  for (std::size_t i = 0; i < bytes_.size(); i += 8) {
    const std::uint64_t word = random();
    std::memcpy(bytes_.data() + i, &word, 8);
  }
}

std::span<const std::byte> Payload::message(std::uint32_t number, std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  for (std::size_t i = 0; i + sizeof number <= bytes; i += kPage)
    std::memcpy(bytes_.data() + i, &number, sizeof number);
  return {bytes_.data(), bytes};
}

void Wire::put(const void* data, std::size_t bytes) const {
  if (send(descriptor_, data, bytes, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes))
    throw wan::Error("the other site's process has gone");
}

void Wire::get(void* data, std::size_t bytes) const {
  if (recv(descriptor_, data, bytes, MSG_WAITALL) != static_cast<ssize_t>(bytes))
    throw wan::Error("the other site's process has gone");
}

SiteProcess::SiteProcess(const std::string& where, const std::function<void(const Wire&)>& work) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    throw wan::Error("no socket pair", std::strerror(errno));
  child_ = fork();
  if (child_ != 0) {
    close(pair[1]);
    own_ = wan::Socket(pair[0]);
    return;
  }
  close(pair[0]);
  try {
    work(Wire(pair[1]));
    _exit(0);
  } catch (const std::exception& error) {
    fmt::print(stderr, "wan_testbed: error at {}: {}\n", where, error.what());
    _exit(1);
  }
}

int SiteProcess::wait() const { return wait_for(child_); }

namespace {

// A plain listener at the address; its port.
int plain_listen(const std::string& address, std::uint16_t& port) {
  const wan::Address local = wan::resolve_local({address, 0});
  const int listener = socket(local.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, reinterpret_cast<const sockaddr*>(&local.storage), local.length) != 0 ||
      listen(listener, 1) != 0)
    throw wan::Error("no plain listener at " + address, std::strerror(errno));
  port = wan::local_address(listener).port();
  return listener;
}

std::size_t plain_receive(int listener, std::span<std::byte> buffer) {
  const wan::Socket s(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  std::size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t n = recv(s.descriptor(), buffer.data() + done, buffer.size() - done, 0);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

class Responder {
 public:
  Responder(const MeasureSetup& setup, const Wire& wire)
      : wire_(wire), payload_(setup.largest), buffer_(setup.largest) {
    std::uint16_t port = 0;
    plain_ = plain_listen(setup.address, port);
    wire_.put(port);
    if (!setup.with_path) return;
    listener_.emplace(wan::Endpoint{setup.address, 0}, setup.security, setup.settings, wan::ListenerLimits{},
                      setup.relay);
    wire_.put(listener_->address().port);
    path_ = listener_->accept().path;
  }

  void run() {
    for (;;) {
      const Order order = wire_.get<Order>();
      const std::size_t bytes = order.bytes;
      const std::span<std::byte> buffer(buffer_.data(), bytes);
      Reply reply{};
      switch (order.what) {
        case Order::kReceive: {
          wan::Request request = path_.start_receive(order.number, buffer);
          wire_.put(Reply{now(), 0});
          request.wait();
          break;
        }
        case Order::kBoth:
          wait_until(order.start);
          path_.send_receive(order.number, payload_.message(order.number, bytes), buffer);
          break;
        case Order::kEcho:
          path_.receive(order.number, buffer);
          path_.send(order.number, buffer);
          break;
        case Order::kPlain:
          wire_.put(Reply{now(), 0});
          plain_receive(plain_, buffer);
          break;
        case Order::kUsage: wire_.put(Reply{cpu_seconds(), 1}); continue;
        case Order::kEnd: return;
      }
      reply.time = now();
      reply.intact = std::memcmp(payload_.message(order.number, bytes).data(), buffer_.data(), bytes) == 0;
      wire_.put(reply);
    }
  }

 private:
  const Wire& wire_;
  Payload payload_;
  std::vector<std::byte> buffer_;
  int plain_ = -1;
  std::optional<wan::Listener> listener_;
  wan::Path path_;
};

}  // namespace

void respond(const MeasureSetup& setup, const Wire& wire) {
  enter_namespace(setup.space[1]);
  Responder(setup, wire).run();
}

// ---- a relay on the way ------------------------------------------------------------------------------------------------

namespace {

void serve(const Wire& wire, const std::string& space, const wan::RelaySettings& settings) {
  enter_namespace(space);
  // A line for each stream would hide the table.
  wan::set_log_sink([](wan::LogLevel level, const std::string& text) {
    if (level != wan::LogLevel::kInfo) fmt::print(stderr, "relay: {}\n", text);
  });
  const wan::Relay relay(settings);
  wire.put(relay.address().port);
  while (wire.get<Order>().what != Order::kEnd) wire.put(Reply{cpu_seconds(), 1});
}

wan::RelaySettings settings_of(const std::string& address, const std::string& key_file, const std::string& congestion) {
  wan::RelaySettings settings;
  settings.listen = {address, 0};
  settings.key_files = {key_file};
  settings.socket.congestion = congestion;
  return settings;
}

}  // namespace

RelaySite::RelaySite(const std::string& space, const std::string& address, const std::string& key_file,
                     const std::string& congestion)
    : process_("the relay", [&](const Wire& wire) { serve(wire, space, settings_of(address, key_file, congestion)); }),
      port_(process_.wire().get<std::uint16_t>()) {}

RelaySite::~RelaySite() {
  try {
    process_.wire().put(Order{Order::kEnd, 0, 0, 0});
  } catch (const wan::Error&) {  // it has gone already
  }
  process_.wait();
}

double RelaySite::cpu_seconds() const {
  process_.wire().put(Order{Order::kUsage, 0, 0, 0});
  return process_.wire().get<Reply>().time;
}

}  // namespace maki::testbed
