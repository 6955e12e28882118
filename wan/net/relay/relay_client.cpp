#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>

#include "wan/net/error.hpp"
#include "wan/net/relay/relay_core.hpp"

namespace maki::wan {

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

// Nothing may come before the verdict is out.
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
