#include "wan/net/relay/relay_client.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>

#include "wan/net/error.hpp"

namespace maki::wan {

RelayClient::RelayClient(EventLoop& loop, Host& host, const KeyRing& keys, std::uint64_t number, Socket socket,
                         const Address& address, double timeout)
    : loop_(loop), host_(host), check_(keys), number_(number), socket_(std::move(socket)), address_(address),
      timeout_(timeout) {
  loop_.watch(socket_.descriptor(), true, true, *this);
  limit_time("did not say what it wants");
}

RelayClient::~RelayClient() {
  loop_.cancel(timer_);
  if (socket_.open()) loop_.forget(socket_.descriptor());
}

void RelayClient::limit_time(const char* what) {
  loop_.cancel(timer_);
  timer_ = loop_.after(timeout_, [this, what] { leave(fmt::format("{} in {:.3g} seconds", what, timeout_)); });
}

void RelayClient::on_ready(bool, bool) {
  switch (step_) {
    case Step::kAsking: return hear();
    case Step::kVerdict: return tell();
    case Step::kWaiting:
      if (!still_there()) leave("went away while it waited");
  }
}

void RelayClient::hear() {
  try {
    const IoStatus status = check_.receive(socket_.descriptor());
    if (status == IoStatus::kClosed) return leave("went away before it said what it wants");
    if (status != IoStatus::kDone) return loop_.change(socket_.descriptor(), true, status == IoStatus::kWantWrite);
  } catch (const Error& error) {
    return leave(error.what());
  }
  loop_.cancel(timer_);
  step_ = Step::kWaiting;
  loop_.change(socket_.descriptor(), true, false);
  host_.asked(*this);
}

// Nothing may come before the verdict is out.
bool RelayClient::still_there() const {
  char byte = 0;
  const ssize_t got = recv(socket_.descriptor(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

void RelayClient::decide(const admission::Verdict& verdict, Then then) {
  check_.decide(verdict);
  then_ = std::move(then);
  step_ = Step::kVerdict;
  limit_time("did not take its verdict");
  loop_.change(socket_.descriptor(), false, true);
  tell();
}

void RelayClient::tell() {
  const IoStatus status = check_.send_verdict(socket_.descriptor());
  if (status == IoStatus::kClosed) return leave("went away before its verdict");
  if (status != IoStatus::kDone) return;
  const Then then = std::move(then_);
  then(*this);
}

Socket RelayClient::take() {
  loop_.cancel(timer_);
  loop_.forget(socket_.descriptor());
  return std::move(socket_);
}

void RelayClient::leave(const std::string& why) {
  loop_.cancel(timer_);
  const std::string reason = why;
  host_.gone(*this, reason);
}

}  // namespace maki::wan
