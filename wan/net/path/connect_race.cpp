#include "wan/net/path/connect_race.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "wan/net/error.hpp"

namespace maki::wan {

// An address that has not answered after so many seconds gets company. More than most round trips.
constexpr double kHeadStart = 0.4;
// A system repeats its question after 1, 2, 4, ... s. Where the network was down meanwhile, asking afresh is sooner heard.
constexpr double kAskAgain = 2;

ConnectRace::ConnectRace(EventLoop& loop, std::vector<Address> addresses, const PathSettings& settings, Won won,
                         Lost lost)
    : loop_(loop), addresses_(std::move(addresses)), settings_(settings), won_(std::move(won)), lost_(std::move(lost)) {
  timer_ = loop_.after(0, [this] { start_next(); });
}

ConnectRace::~ConnectRace() {
  loop_.cancel(timer_);
  while (!attempts_.empty()) end(attempts_.front());
}

void ConnectRace::start_next() {
  timer_ = 0;
  if (!addresses_.empty()) {
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

void ConnectRace::answered(Attempt& attempt) {
  if (const int error = connect_error(attempt.socket.descriptor()); error != 0) {
    return fail(attempt, attempt.address.text() + ": " + std::strerror(error));
  }
  loop_.forget(attempt.socket.descriptor());
  const Won won = std::move(won_);
  const Address address = attempt.address;
  Socket socket = std::move(attempt.socket);
  won(std::move(socket), address);
}

void ConnectRace::fail(Attempt& attempt, const std::string& reason) {
  add_reason(reason);
  end(attempt);
  loop_.cancel(timer_);
  timer_ = 0;
  go_on();
}

void ConnectRace::end(Attempt& attempt) {
  loop_.cancel(attempt.timeout);
  if (attempt.socket.open()) loop_.forget(attempt.socket.descriptor());
  attempts_.remove_if([&](const Attempt& one) { return &one == &attempt; });
}

// What comes next: another address, at once when none is under way, or the news that all of them failed.
void ConnectRace::go_on() {
  if (next_ < addresses_.size()) {
    timer_ = loop_.after(attempts_.empty() ? 0 : kHeadStart, [this] { start_next(); });
  } else if (!attempts_.empty()) {
    if (time_left() > kAskAgain + 1) timer_ = loop_.after(kAskAgain, [this] { start_next(); });
  } else {
    const Lost lost = std::move(lost_);
    const std::string reasons = reasons_.empty() ? "it has no address" : reasons_;
    lost(reasons);
  }
}

double ConnectRace::time_left() const {
  return settings_.connect_timeout - std::chrono::duration<double>(EventLoop::Clock::now() - begun_).count();
}

void ConnectRace::add_reason(const std::string& reason) {
  if (reasons_.find(reason) == std::string::npos) reasons_ += (reasons_.empty() ? "" : "; ") + reason;
}

}  // namespace maki::wan
