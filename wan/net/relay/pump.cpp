#include "wan/net/relay/pump.hpp"

#include <algorithm>

#include "wan/net/wall_clock.hpp"

namespace maki::wan {

RelayPump::RelayPump(const std::string& thread_name, double idle_timeout, Ended ended)
    : idle_timeout_(idle_timeout), ended_(std::move(ended)), loop_(thread_name) {
  loop_.post([this] { watch_idle(); });
}

RelayPump::~RelayPump() {
  loop_.call([this] {
    while (!sessions_.empty()) sessions_.begin()->second.session->end("the relay stopped");
  });
}

void RelayPump::add(std::uint64_t number, Socket caller, Socket target) {
  // A std::function has to be copyable, and sockets are not.
  auto pair = std::make_shared<std::pair<Socket, Socket>>(std::move(caller), std::move(target));
  loop_.post([this, number, pair] { start(number, std::move(pair->first), std::move(pair->second)); });
}

void RelayPump::start(std::uint64_t number, Socket caller, Socket target) {
  auto session = std::make_unique<RelaySession>(loop_, pipes_, std::move(caller), std::move(target), bytes_,
                                                [this, number](const std::string& how) { this->ended(number, how); });
  sessions_.emplace(number, Running{std::move(session), WallClock::now()});
}

void RelayPump::ended(std::uint64_t number, const std::string& how) {
  const auto found = sessions_.find(number);
  const RelaySession& session = *found->second.session;
  const SessionReport report{number, session.there(), session.back(), seconds_since(found->second.since), how};
  sessions_.erase(found);
  ended_(report);
}

void RelayPump::watch_idle() {
  end_idle();
  loop_.after(std::clamp(idle_timeout_ / 10, 0.01, 10.0), [this] { watch_idle(); });
}

void RelayPump::end_idle() {
  for (auto next = sessions_.begin(); next != sessions_.end();) {
    RelaySession& session = *(next++)->second.session;
    if (seconds_since(session.last_moved()) > idle_timeout_) session.end("nothing moved for too long");
  }
}

}  // namespace maki::wan
