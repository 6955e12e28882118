// Callers after the start: jobs that are no part of the run.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "wan/net/error.hpp"
#include "wan/net/listener.hpp"
#include "wan/sites/net_ring.hpp"

namespace maki::sites {
namespace {

constexpr double kPoll = 0.1;  // seconds
constexpr std::size_t kMostVisitors = 8;

struct Visitor {
  wan::Accepted caller;
  wan::WallClock::time_point begun = wan::WallClock::now();
};

}  // namespace

// Turns away second jobs of neighbours that take part. A job that was started anew after a loss which this site does
// not know of yet is not answered: it waits for this site's next job.
void NetRing::run_visits() try {
  const std::string since = fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time(nullptr)));
  const Message hello = encode(hellos_[static_cast<std::size_t>(routes_.me)]);
  wan::PeerLog lines([](const std::string& line) { wan::log(wan::LogLevel::kWarning, line); });
  std::vector<Visitor> visitors;
  TurnedAway turned_away;
  const auto answered = [&](Visitor& visitor) {
    wan::Accepted& caller = visitor.caller;
    const auto link = std::ranges::find_if(links_, [&](const Link& one) { return name(one.site) == caller.name; });
    const bool known = link != links_.end();
    if (known && !answers_after(link->path, visitor.begun).value_or(false)) return false;
    const std::string why = known ? "the run is under way since " + since + " with another job of site " + caller.name
                                  : "it is no neighbour of " + name(routes_.me);
    turned_away.add(std::move(caller.path), hello, known ? turned_away_text(name(routes_.me), why) : "");
    lines.mention(turned_away_line(caller.name, why), caller.identity);
    return true;
  };
  const auto stops = [this] {
    const std::lock_guard lock(mutex_);
    return stopping_;
  };
  while (!stops()) {
    if (auto caller = listener_->accept_for(kPoll)) visitors.push_back({std::move(*caller)});
    std::erase_if(visitors, answered);
    if (visitors.size() > kMostVisitors) visitors.erase(visitors.begin());
  }
  turned_away.close();
  for (Visitor& visitor : visitors) visitor.caller.path.close(0);
} catch (const wan::Error&) {
  // Callers wait in vain, as at a site that does not answer.
}

}  // namespace maki::sites
