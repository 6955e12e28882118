// Callers after the start: jobs that are no part of the run.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <optional>
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
  wan::Request hello = caller.path.start_receive_any(kHelloTag, kLongestHello);
  wan::WallClock::time_point begun = wan::WallClock::now();
  std::optional<Hello> theirs = {};
};

// Whether it is there and a job for a run like this one, under the neighbour's name; false until its hello has arrived.
bool comes_to_run(Visitor& visitor, const Hello& ours) {
  if (!visitor.theirs) {
    if (!visitor.hello.test()) return false;
    const wan::Bytes hello = visitor.hello.take();
    visitor.theirs = decode_hello(hello.view());
  }
  return visitor.caller.path.status().up && visitor.theirs->purpose == Purpose::kRun &&
         visitor.theirs->name == visitor.caller.name && differences(ours, *visitor.theirs).empty();
}

}  // namespace

// Turns away second jobs of neighbours that take part. Where the path to the first one is down, a second job tells that
// the first is gone: this run ends, and the job waits for this site's next one.
void NetRing::run_visits() try {
  const std::string since = fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time(nullptr)));
  const Hello& ours = hellos_[static_cast<std::size_t>(routes_.me)];
  const Message hello = encode(ours);
  wan::PeerLog lines([](const std::string& line) { wan::log(wan::LogLevel::kWarning, line); });
  std::vector<Visitor> visitors;
  TurnedAway turned_away;
  const auto answered = [&](Visitor& visitor) {
    wan::Accepted& caller = visitor.caller;
    const auto link = std::ranges::find_if(links_, [&](const Link& one) {
      return name(one.site) == caller.name && (one.key.empty() || one.key == caller.identity);
    });
    const bool known = link != links_.end();
    if (known) {
      const std::optional<bool> there = answers_after(link->path, visitor.begun);
      if (there == false && comes_to_run(visitor, ours)) report_successor(*link);
      if (there != true) return false;
    }
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
    if (auto caller = listener_->accept_for(kPoll)) visitors.push_back({.caller = std::move(*caller)});
    std::erase_if(visitors, [&](Visitor& visitor) {
      try {
        return answered(visitor);
      } catch (const std::exception&) {  // its path is lost, or its hello is none
        return true;
      }
    });
    if (visitors.size() > kMostVisitors) {
      visitors.front().caller.path.close(0);
      visitors.erase(visitors.begin());
    }
  }
  turned_away.close();
  for (Visitor& visitor : visitors) visitor.caller.path.close(0);
} catch (const std::exception&) {
  // Callers wait in vain, as at a site that does not answer.
}

void NetRing::report_successor(const Link& link) {
  const SiteLost lost("site " + name(link.site) + " is lost",
                      "seen by site " + name(routes_.me) +
                          ": another job of it has called, and the path to the first is down");
  fail(std::make_exception_ptr(lost), lost.what(), &link);
}

}  // namespace maki::sites
