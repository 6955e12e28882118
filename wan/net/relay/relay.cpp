#include "wan/net/relay/relay.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "wan/net/error.hpp"
#include "wan/net/relay/relay_core.hpp"

namespace maki::wan {
namespace {

void check_range(const char* name, double value, double least, double most) {
  if (!(value >= least && value <= most))
    throw Error(fmt::format("relay: {} = {:g}", name, value),
                fmt::format("it has to be from {:g} to {:g}", least, most));
}

int thread_count(const RelaySettings& settings) {
  const auto cores = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 4u));
  return settings.threads > 0 ? settings.threads : cores;
}

}  // namespace

void RelaySettings::check() const {
  socket.check();
  check_range("threads", threads, 0, 64);
  check_range("half_open", half_open, 1, 65536);
  check_range("sessions", sessions, 1, 1 << 20);
  check_range("sessions_per_key", sessions_per_key, 0, 1 << 20);
  check_range("names", names, 1, 65536);
  check_range("admission_timeout", admission_timeout, 0.01, 3600);
  check_range("answer_timeout", answer_timeout, 0.01, 3600);
  check_range("idle_timeout", idle_timeout, 0.01, 1e7);
  for (const auto& [name, endpoint] : destinations) {
    if (!admission::valid_name(name))
      throw Error(fmt::format("'{}' cannot be a name at a relay", name), "",
                  "use 1 to 63 printable characters without blanks");
    if (endpoint.host.empty() || endpoint.port == 0)
      throw Error(fmt::format("the destination '{}' has no host or no port", name), endpoint.text(),
                  "write NAME=HOST:PORT");
  }
}

std::size_t RelaySettings::descriptors() const {
  // Two sockets and a pipe; or, while connecting, the caller's socket and those to its destination.
  constexpr std::size_t kOfASession = std::max<std::size_t>(4, 1 + Connector::kAtOnce);
  constexpr std::size_t kOfAThread = 2 * PipePool::kFree + 8, kOthers = 100;
  return kOfASession * static_cast<std::size_t>(sessions) + static_cast<std::size_t>(half_open + names) +
         kOfAThread * static_cast<std::size_t>(thread_count(*this)) + kOthers;
}

Relay::Relay(const RelaySettings& settings) {
  settings.check();
  core_ = std::make_unique<RelayCore>(settings, thread_count(settings));
}

Relay::~Relay() = default;
Endpoint Relay::address() const { return {core_->address().host(), core_->address().port()}; }
RelayStatus Relay::status() const { return core_->status(); }

// ---- a client, until it is refused or passed on --------------------------------------------------------------------

RelayClient::RelayClient(EventLoop& loop, RelayCore& core, const KeyRing& keys, Connection connection, double timeout)
    : loop_(loop), core_(core), check_(keys), connection_(std::move(connection)), timeout_(timeout) {
  loop_.watch(connection_.socket.descriptor(), true, true, *this);
  limit_time("did not say what it wants");
}

RelayClient::~RelayClient() {
  loop_.cancel(timer_);
  if (connection_.socket.open()) loop_.forget(connection_.socket.descriptor());
}

void RelayClient::limit_time(const char* what) {
  loop_.cancel(timer_);
  timer_ = loop_.after(timeout_, [this, what] { leave(fmt::format("{} in {:.3g} seconds", what, timeout_)); });
}

void RelayClient::on_ready(bool, bool) {
  switch (step_) {
    case Step::kAsking: return receive_request();
    case Step::kVerdict: return send_verdict();
    case Step::kWaiting:
      if (!still_there()) leave("went away while it waited");
  }
}

void RelayClient::receive_request() {
  try {
    const IoStatus status = check_.receive(connection_.socket.descriptor());
    if (status == IoStatus::kClosed) return leave("went away before it said what it wants");
    if (status != IoStatus::kDone)
      return loop_.change(connection_.socket.descriptor(), true, status == IoStatus::kWantWrite);
  } catch (const Error& error) {
    return leave(error.what());
  }
  loop_.cancel(timer_);
  step_ = Step::kWaiting;
  loop_.change(connection_.socket.descriptor(), true, false);
  core_.asked(*this);
}

// The client must not send anything before the verdict.
bool RelayClient::still_there() const {
  char byte = 0;
  const ssize_t got = recv(connection_.socket.descriptor(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

void RelayClient::decide(const admission::Verdict& verdict, Then then) {
  check_.decide(verdict);
  then_ = std::move(then);
  step_ = Step::kVerdict;
  limit_time("did not take its verdict");
  loop_.change(connection_.socket.descriptor(), false, true);
  send_verdict();
}

void RelayClient::send_verdict() {
  const IoStatus status = check_.send_verdict(connection_.socket.descriptor());
  if (status == IoStatus::kClosed) return leave("went away before its verdict");
  if (status != IoStatus::kDone) return;
  const Then then = std::move(then_);
  then(*this);
}

Socket RelayClient::take() {
  loop_.cancel(timer_);
  loop_.forget(connection_.socket.descriptor());
  return std::move(connection_.socket);
}

void RelayClient::leave(const std::string& why) {
  loop_.cancel(timer_);
  const std::string reason = why;
  core_.gone(*this, reason);
}

}  // namespace maki::wan
