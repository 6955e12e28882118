#include "wan/net/relay/relay_dial.hpp"

#include <cstring>

#include "wan/net/error.hpp"

namespace maki::wan {

RelayDial::RelayDial(EventLoop& loop, std::vector<Address> addresses, const PathSettings& settings, Ask ask, Done done,
                     Failed failed)
    : loop_(loop), addresses_(std::move(addresses)), settings_(settings), ask_(std::move(ask)), done_(std::move(done)),
      failed_(std::move(failed)) {
  timer_ = loop_.after(0, [this] { try_next(); });  // later: the owner has us by then
}

RelayDial::~RelayDial() { drop_socket(); }

void RelayDial::drop_socket() {
  loop_.cancel(timer_);
  timer_ = 0;
  if (socket_.open()) loop_.forget(socket_.descriptor());
  socket_ = Socket();
  admission_.reset();
}

void RelayDial::try_next() {
  drop_socket();
  while (tried_ < addresses_.size()) {
    ++tried_;
    try {
      socket_ = start_connect(address(), settings_);
      loop_.watch(socket_.descriptor(), false, true, *this);
      timer_ = loop_.after(settings_.connect_timeout, [this] {
        last_reason_ = address().text() + ": no answer";
        try_next();
      });
      return;
    } catch (const Error& error) {
      last_reason_ = error.what();
    }
  }
  give_up(Failure::kAgain, last_reason_);
}

void RelayDial::on_ready(bool, bool) {
  if (admission_ == nullptr) return connected();
  advance();
}

void RelayDial::connected() {
  if (const int error = connect_error(socket_.descriptor()); error != 0) {
    last_reason_ = address().text() + ": " + std::strerror(error);
    return try_next();
  }
  if (!ask_) return succeed();
  admission_ = ask_();
  loop_.cancel(timer_);
  timer_ = loop_.after(settings_.handshake_timeout, [this] {
    give_up(Failure::kAgain, "the relay at " + address().text() + " did not finish its greeting in time");
  });
  advance();
}

void RelayDial::advance() {
  try {
    switch (admission_->progress(socket_.descriptor())) {
      case IoStatus::kWantRead: return loop_.change(socket_.descriptor(), true, false);
      case IoStatus::kWantWrite: return loop_.change(socket_.descriptor(), false, true);
      case IoStatus::kClosed:
        return give_up(Failure::kAgain,
                       "the relay at " + address().text() + " closed the connection before its verdict");
      case IoStatus::kDone: break;
    }
  } catch (const SecurityError& error) {
    return give_up(Failure::kSecurity, error.what());
  } catch (const Error& error) {
    return give_up(admission_->try_again() ? Failure::kAgain : Failure::kRefused, error.what());
  }
  succeed();
}

void RelayDial::succeed() {
  loop_.forget(socket_.descriptor());
  Socket socket = std::move(socket_);
  drop_socket();
  const Done done = std::move(done_);
  done(std::move(socket));
}

void RelayDial::give_up(Failure failure, const std::string& reason) {
  drop_socket();
  const Failed failed = std::move(failed_);
  const std::string why = reason;
  failed(failure, why);
}

}  // namespace maki::wan
