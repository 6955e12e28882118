#include "wan/net/relay/connector.hpp"

#include <fmt/format.h>

#include <cstring>

#include "wan/net/error.hpp"
#include "wan/net/quantity.hpp"

namespace maki::wan {
namespace {

// Seconds without an answer after which the next address is tried in parallel. Longer than most round trips. An attempt
// that must make room for another has had time for a retransmission of the system's, too.
constexpr double kHeadStart = 0.4;
// A system retransmits its SYN after 1, 2, 4, ... s. If the network was down meanwhile, a new attempt gets through
// sooner.
constexpr double kAskAgain = 2;

}  // namespace

Connector::Connector(EventLoop& loop, std::vector<Address> addresses, const PathSettings& settings,
                     std::unique_ptr<RelayAdmission> admission, Done done, Failed failed)
    : loop_(loop), addresses_(std::move(addresses)), settings_(settings), admission_(std::move(admission)),
      done_(std::move(done)), failed_(std::move(failed)) {
  timer_ = loop_.after(0, [this] { start_next(); });  // later: the owner must have this object by then
}

Connector::~Connector() {
  loop_.cancel(timer_);
  while (!attempts_.empty()) end(attempts_.front());
}

void Connector::start_next() {
  timer_ = 0;
  if (!addresses_.empty()) {
    make_room();
    Attempt& attempt = attempts_.emplace_back(*this, addresses_[next_ % addresses_.size()]);
    const double patience = next_++ < addresses_.size() ? settings_.connect_timeout : time_left();
    try {
      attempt.socket = start_connect(attempt.address, settings_);
      loop_.watch(attempt.socket.descriptor(), false, true, attempt);
      attempt.timeout = loop_.after(patience, [this, &attempt] {
        fail(attempt, fmt::format("{}: no answer in {} s", attempt.address.text(), settings_.connect_timeout));
      });
    } catch (const Error& error) {
      add_reason(error.what());
      end(attempt);
    }
  }
  go_on();
}

// Ends the oldest attempt: its address is tried again while there is time.
void Connector::make_room() {
  if (attempts_.size() < kAtOnce) return;
  made_room_.push_back(attempts_.front().address.text());
  end(attempts_.front());
}

// The next step: another address, at once if no attempt is running, or the report that all have failed.
void Connector::go_on() {
  if (next_ < addresses_.size()) {
    const double wait = attempts_.empty() ? 0 : attempts_.size() < kAtOnce ? kHeadStart : kAskAgain;
    timer_ = loop_.after(wait, [this] { start_next(); });
  } else if (!attempts_.empty()) {
    if (time_left() > kAskAgain + 1) timer_ = loop_.after(kAskAgain, [this] { start_next(); });
  } else {
    for (const std::string& address : made_room_)
      if (reasons_.find(address + ":") == std::string::npos) add_reason(address + ": no answer");
    give_up(Failure::kAgain, reasons_.empty() ? "it has no address" : reasons_);
  }
}

void Connector::on_ready(Attempt& attempt) {
  if (!connected_) {
    const int error = connect_error(attempt.socket.descriptor());
    if (error != 0) return fail(attempt, attempt.address.text() + ": " + std::strerror(error));
    answered(attempt);
  }
  if (admission_ && !admitted(attempt)) return;
  loop_.cancel(timer_);
  loop_.forget(attempt.socket.descriptor());
  Socket socket = std::move(attempt.socket);
  const Address address = attempt.address;
  const Done done = std::move(done_);
  done(std::move(socket), address);
}

// The connection is taken, and all other attempts end.
void Connector::answered(Attempt& attempt) {
  connected_ = true;
  loop_.cancel(timer_);
  loop_.cancel(attempt.timeout);
  while (attempts_.size() > 1) end(&attempts_.front() == &attempt ? attempts_.back() : attempts_.front());
  if (!admission_) return;
  timer_ = loop_.after(settings_.handshake_timeout, [this, at = attempt.address.text()] {
    give_up(Failure::kAgain,
            fmt::format("the relay at {} did not finish its greeting in {} s", at, settings_.handshake_timeout));
  });
}

// False if the relay has not answered yet, or this object has ended.
bool Connector::admitted(Attempt& attempt) {
  const int descriptor = attempt.socket.descriptor();
  try {
    const IoStatus status = admission_->progress(descriptor);
    if (status == IoStatus::kDone) return true;
    if (status != IoStatus::kClosed)
      return loop_.change(descriptor, status == IoStatus::kWantRead, status == IoStatus::kWantWrite), false;
  } catch (const SecurityError& error) {
    return give_up(Failure::kSecurity, error.what()), false;
  } catch (const Error& error) {
    return give_up(admission_->try_again() ? Failure::kAgain : Failure::kRefused, error.what()), false;
  }
  give_up(Failure::kAgain, "the relay at " + attempt.address.text() + " closed the connection before its verdict");
  return false;
}

void Connector::fail(Attempt& attempt, const std::string& reason) {
  add_reason(reason);
  end(attempt);
  loop_.cancel(timer_);
  go_on();
}

void Connector::end(Attempt& attempt) {
  loop_.cancel(attempt.timeout);
  if (attempt.socket.open()) loop_.forget(attempt.socket.descriptor());
  attempts_.remove_if([&](const Attempt& one) { return &one == &attempt; });
}

void Connector::give_up(Failure failure, const std::string& reason) {
  const Failed failed = std::move(failed_);
  const std::string why = reason;
  loop_.cancel(timer_);
  while (!attempts_.empty()) end(attempts_.front());
  failed(failure, why);
}

double Connector::time_left() const { return settings_.connect_timeout - seconds_since(begun_); }

void Connector::add_reason(const std::string& reason) {
  if (reasons_.find(reason) == std::string::npos) reasons_ += (reasons_.empty() ? "" : "; ") + reason;
}

}  // namespace maki::wan
