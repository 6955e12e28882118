#include "wan/sites/net_ring.hpp"

#include <fmt/chrono.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>
#include <system_error>

#include "kernels/device/memory.hpp"
#include "wan/net/error.hpp"
#include "wan/net/listener.hpp"
#include "wan/net/settings.hpp"
#include "wan/sites/ring.hpp"
#include "wan/sites/ring_plan.hpp"

namespace maki::sites {
namespace {

using wan::seconds_since;
using wan::WallClock;

constexpr double kReportInterval = 10;  // seconds between two lines about a site that is waited for
constexpr double kNoticeTime = 3;       // seconds for the notice of why this site leaves
constexpr double kCloseTime = 60;       // seconds for a regular end, when all messages are acknowledged already
constexpr double kPoll = 0.1;           // seconds between two looks for further callers
constexpr std::size_t kMostVisitors = 8;

std::size_t half_of_memory() {
  if (const std::size_t available = host_memory_available()) return available / 2;
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) / 2 * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// A caller after the start: a job that is no part of the run.
struct Visitor {
  wan::Accepted caller;
  wan::Request hello = caller.path.start_receive_any(kHelloTag, kLongestHello);
  WallClock::time_point begun = WallClock::now();
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

NetRing::NetRing(const RingPlan& plan)
    : routes_{static_cast<int>(plan.sites.size()), plan.me},
      memory_limit_(plan.memory_limit > 0 ? plan.memory_limit : half_of_memory()), wait_lines_(plan.wait_lines),
      context_(routes_.count > 2 ? 2 : 1) {
  for (const SitePlace& site : plan.sites) names_.push_back(site.name);
  hellos_.resize(plan.sites.size());
  const auto begun = WallClock::now();
  try {
    translate_errors([&] {
      connect_neighbours(plan);
      start_threads();
      exchange_hellos(plan, plan.wait_limit > 0 ? std::max(plan.wait_limit - seconds_since(begun), 1.0) : 0);
    });
  } catch (const std::exception& error) {
    const bool lost = dynamic_cast<const SiteLost*>(&error) != nullptr;
    const bool told = dynamic_cast<const Error*>(&error) != nullptr;
    const std::string why = (told ? "" : "site " + name(routes_.me) + " cannot start: ") + message_of(error);
    for (Link& link : links_) send_notice(link.path, lost ? Notice::kLost : Notice::kRefused, why);
    stop(kNoticeTime);
    throw;
  }
}

NetRing::~NetRing() {
  std::unique_lock lock(mutex_);
  const bool told = closed_ || failed_;
  lock.unlock();
  if (!told) {
    for (Link& link : links_)
      send_notice(link.path, Notice::kLost,
                  "site " + name(routes_.me) + " has left the run (its own messages tell why)");
  }
  stop(kNoticeTime);
}

// Connects to the neighbours and checks their hellos.
void NetRing::connect_neighbours(const RingPlan& plan) {
  std::string problem;
  LinkStart start(plan, Purpose::kRun, context_);
  if (const std::string warning = shared_key_warning(plan); !warning.empty()) plan.report(warning);
  start.run(true, plan.wait_limit);
  for (const StartedLink& started : start.links())
    if (problem.empty()) problem = started.problem;
  if (!problem.empty()) start.refuse(problem);
  hellos_[static_cast<std::size_t>(routes_.me)] = start.ours();
  listener_ = start.take_listener();
  for (StartedLink& started : start.links()) {
    if (!started.path.valid()) continue;
    Link& link = links_.emplace_back();
    link.site = started.site;
    link.key = started.key;
    link.path = std::move(started.path);
    link.notice = started.notice;
  }
  if (!problem.empty()) throw Error(problem);
}

void NetRing::start_threads() {
  lanes_.resize(static_cast<std::size_t>(routes_.count) * kPhases);
  for (int origin = 0; origin < routes_.count; ++origin) {
    if (origin == routes_.me) continue;
    const bool from_left = Routes{routes_.count, origin}.goes_right(routes_.me);
    for (std::size_t phase = 0; phase < kPhases; ++phase) {
      auto lane = std::make_unique<Lane>();
      lane->origin = origin;
      lane->phase = static_cast<Phase>(phase);
      lane->from = from_left ? &left() : &right();
      lane->onward = links_.size() == 1 ? nullptr : from_left ? &right() : &left();
      ++lane->from->readers;
      lanes_[static_cast<std::size_t>(origin) * kPhases + phase] = std::move(lane);
    }
  }
  for (Link& link : links_) ++link.readers;
  for (Link& link : links_) {
    link.release_thread = std::thread([this, &link] { run_releases(link); });
    link.notice_thread = std::thread([this, &link] { await_notice(link); });
  }
  for (auto& lane : lanes_)
    if (lane) lane->thread = std::thread([this, &lane = *lane] { run_lane(lane); });
  if (listener_) visits_thread_ = std::thread([this] { run_visits(); });
}

// Exchanges the hellos of all sites: then the ring is complete.
void NetRing::exchange_hellos(const RingPlan& plan, double limit) {
  const Hello& ours = hellos_[static_cast<std::size_t>(routes_.me)];
  publish(Phase::kControl, 0, encode(ours));
  const auto begun = WallClock::now();
  double next_report = kReportInterval;
  for (int site = 0; site < routes_.count; ++site) {
    if (site == routes_.me) continue;
    std::unique_lock lock(mutex_);
    const auto there = [&] { return failed_ || !lane(site, Phase::kControl).arrived.empty(); };
    while (!changed_.wait_for(lock, std::chrono::milliseconds(500), there)) {
      if (limit > 0 && seconds_since(begun) > limit)
        throw Error("site " + name(site) + " did not join the ring in time", "its neighbours were there");
      if (seconds_since(begun) < next_report) continue;
      plan.report("waiting for site " + name(site) + " (no neighbour of this one; it has not joined the ring yet)");
      next_report = seconds_since(begun) + kReportInterval;
    }
    lock.unlock();
    Hello& theirs = hellos_[static_cast<std::size_t>(site)] = decode_hello(receive(site, Phase::kControl, 0));
    if (theirs.name != name(site)) throw Error("what should be site " + name(site) + " calls itself " + theirs.name);
    const auto found = differences(ours, theirs);
    if (!found.empty()) throw Error("site " + name(site) + " cannot run together with this one", found.front());
  }
  take_traffic();
}

void NetRing::send(int to, Phase phase, std::uint64_t number, Message message) {
  if (to < 0 || to >= routes_.count || to == routes_.me)
    throw Error("a message to site " + std::to_string(to) + " of the ring");
  count_sent(phase, 1, message);
  const Header header{.last = static_cast<std::uint16_t>(to), .number = number};
  post(routes_.goes_right(to) ? right() : left(), phase, header, std::make_shared<Message>(std::move(message)));
}

void NetRing::publish(Phase phase, std::uint64_t number, Message message) {
  count_sent(phase, links_.size(), message);
  post_to_all(phase, {.number = number}, std::make_shared<Message>(std::move(message)));
}

Message NetRing::receive(int from, Phase phase, std::uint64_t number) {
  if (from < 0 || from >= routes_.count || from == routes_.me)
    throw Error("a message from site " + std::to_string(from) + " of the ring");
  std::unique_lock lock(mutex_);
  Lane& in = lane(from, phase);
  Traffic& traffic = traffic_[static_cast<std::size_t>(phase)];
  if (in.arrived.empty()) {
    double& longest = longest_wait_[static_cast<std::size_t>(phase)];
    const double waited = wait_until(
        lock, [&] { return failed_ || in.ended || !in.arrived.empty(); },
        [&] {
          return Awaited{maki::sites::name(phase), from};
        },
        longest);
    ++traffic.waits;
    traffic.waited += waited;
    throw_if_failed();
    longest = std::max(longest, waited);
  }
  const std::string what = std::string(maki::sites::name(phase)) + " " + std::to_string(number);
  if (in.arrived.empty()) throw Error("site " + name(from) + " has ended its run", what + " is waited for");
  auto [came, message] = std::move(in.arrived.front());
  in.arrived.pop_front();
  if (came != number)
    throw Error("the sites are not in step", std::string(maki::sites::name(phase)) + " " + std::to_string(came) +
                                                 " came from site " + name(from) + " for " + std::to_string(number));
  ++traffic.messages_received;
  traffic.bytes_received += message->size();
  lock.unlock();
  // A message that is still being passed on is copied.
  if (message.use_count() == 1) return std::move(*message);
  return *message;
}

std::array<Traffic, kPhases> NetRing::take_traffic() {
  const std::lock_guard lock(mutex_);
  return std::exchange(traffic_, {});
}

// The last message of each lane marks its end, so that a site knows when it has passed on all messages.
void NetRing::close() {
  {
    const std::lock_guard lock(mutex_);
    throw_if_failed();
    if (closed_) return;
  }
  const auto nothing = std::make_shared<Message>();
  for (std::size_t phase = 0; phase < kPhases; ++phase)
    post_to_all(static_cast<Phase>(phase), {.kind = Header::kEnd}, nothing);
  {
    std::unique_lock lock(mutex_);
    const auto missing = [&]() -> std::optional<Awaited> {
      for (const auto& lane : lanes_)
        if (lane && !lane->ended) return Awaited{"the end", lane->origin};
      for (const Link& link : links_)
        if (!link.unacknowledged.empty() || link.awaiting_oldest) return Awaited{"the receipts", link.site};
      return {};
    };
    wait_until(
        lock, [&] { return failed_ || !missing(); }, [&] { return missing().value(); });
    throw_if_failed();
    closed_ = true;
  }
  stop(kCloseTime);
}

// Closes the paths, at the same time (one after the other where no thread can be made), and ends all threads.
void NetRing::stop(double seconds) {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  std::vector<std::thread> closing;
  closing.reserve(links_.size());
  for (Link& link : links_) try {
      closing.emplace_back([&link, seconds] { link.path.close(seconds); });
    } catch (const std::system_error&) {
      link.path.close(seconds);
    }
  for (std::thread& thread : closing) thread.join();
  for (Link& link : links_)
    for (std::thread* thread : {&link.release_thread, &link.notice_thread})
      if (thread->joinable()) thread->join();
  for (auto& lane : lanes_)
    if (lane && lane->thread.joinable()) lane->thread.join();
  if (visits_thread_.joinable()) visits_thread_.join();
}

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
      if (there == false && comes_to_run(visitor, ours))
        fail_by_loss(link->site, "another job of it has called, and the path to the first is down", &*link);
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

wan::Path& NetRing::path_to(int neighbour) {
  for (Link& link : links_)
    if (link.site == neighbour) return link.path;
  throw Error("site " + std::to_string(neighbour) + " is no neighbour");
}

}  // namespace maki::sites
