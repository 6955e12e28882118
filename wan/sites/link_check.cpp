#include "wan/sites/link_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <thread>

#include "wan/net/error.hpp"
#include "wan/net/listener.hpp"
#include "wan/net/settings.hpp"
#include "wan/sites/link_start.hpp"
#include "wan/sites/ring.hpp"

namespace maki::sites {
namespace {

using wan::seconds_since;
using wan::WallClock;

constexpr double kDefaultWait = 60;
constexpr double kPatience = 30;  // seconds until a site that stops answering ends the measurement
constexpr int kPings = 6;
constexpr double kBulkTime = 3;  // seconds for each direction
constexpr std::size_t kChunk = 256 << 10;
constexpr std::size_t kFirstWindow = 4 << 20, kLastWindow = 128 << 20;  // bytes in flight
constexpr std::size_t kMostBytes = std::size_t{256} << 20;
constexpr wan::Tag kNumbersTag = kCheckTag, kBulkTag = kCheckTag + 1;

double wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Bytes that are sent; never freed, since a path that was given up may still read them.
const std::vector<std::byte>& zeros() {
  static const auto* const bytes = new std::vector<std::byte>(kChunk);
  return *bytes;
}

void await(wan::Request& request) {
  if (!request.wait_for(kPatience)) throw wan::Error("it stopped answering during the measurement");
}

void send_numbers(wan::Path& path, std::initializer_list<double> numbers) {
  path.start_send(kNumbersTag, std::as_bytes(std::span(numbers.begin(), numbers.size())));  // few: copied
}

std::vector<double> receive_numbers(wan::Path& path, std::size_t count) {
  wan::Request request = path.start_receive_any(kNumbersTag, 1024);
  await(request);
  const wan::Bytes bytes = request.take();
  if (bytes.size != count * sizeof(double)) throw wan::Error("it answers something else than was asked");
  std::vector<double> numbers(count);
  std::memcpy(numbers.data(), bytes.data.get(), bytes.size);
  return numbers;
}

// Sends at the full rate for kBulkTime. The window grows as long as it is acknowledged within 1.5 s.
void send_bulk(wan::Path& path) {
  const auto begun = WallClock::now();
  std::deque<wan::Request> in_flight;
  std::size_t window = kFirstWindow, sent = 0;
  auto round = begun;
  std::size_t round_bytes = 0;
  while (seconds_since(begun) < kBulkTime && sent < kMostBytes) {
    while (in_flight.size() * kChunk < window) {
      in_flight.push_back(path.start_send(kBulkTag, zeros()));
      sent += kChunk;
    }
    await(in_flight.front());
    in_flight.pop_front();
    round_bytes += kChunk;
    if (round_bytes < window) continue;
    if (seconds_since(round) < 1.5) window = std::min(2 * window, kLastWindow);
    round_bytes = 0;
    round = WallClock::now();
  }
  path.start_send(kBulkTag, std::span<const std::byte>());
  for (wan::Request& request : in_flight) await(request);
}

// The rate (bytes/s) over the second half of the messages, when the streams have reached their rate.
double receive_bulk(wan::Path& path) {
  std::vector<WallClock::time_point> times;
  for (;;) {
    wan::Request request = path.start_receive_any(kBulkTag, kChunk);
    await(request);
    if (request.size() == 0) break;
    if (times.size() * kChunk >= kMostBytes + kLastWindow) throw wan::Error("it sends more than the measurement takes");
    times.push_back(request.done_at());
    request.take();
  }
  if (times.size() < 4) return 0;
  std::sort(times.begin(), times.end());
  const std::size_t middle = times.size() / 2;
  const double seconds = std::chrono::duration<double>(times.back() - times[middle]).count();
  return seconds > 0 ? static_cast<double>((times.size() - 1 - middle) * kChunk) / seconds : 0;
}

// The caller leads the measurement; measure_as_called() answers in the same order.
void measure_as_caller(wan::Path& path, LinkCheck& link) {
  for (int i = 0; i < kPings; ++i) {
    const auto begun = WallClock::now();  // read first: time that passes between the two readings counts as the trip's
    const double asked = wall_clock();
    send_numbers(path, {0});
    const double theirs = receive_numbers(path, 1)[0], trip = seconds_since(begun);
    if (i > 0 && trip >= link.round_trip) continue;
    link.round_trip = trip;
    link.clock_difference = theirs - (asked + trip / 2);
  }
  send_numbers(path, {link.round_trip, -link.clock_difference});
  send_bulk(path);
  link.rate_out = receive_numbers(path, 1)[0];
  link.rate_in = receive_bulk(path);
  send_numbers(path, {link.rate_in});
}

void measure_as_called(wan::Path& path, LinkCheck& link) {
  for (int i = 0; i < kPings; ++i) {
    receive_numbers(path, 1);
    send_numbers(path, {wall_clock()});
  }
  const auto found = receive_numbers(path, 2);
  link.round_trip = found[0];
  link.clock_difference = found[1];
  link.rate_in = receive_bulk(path);
  send_numbers(path, {link.rate_in});
  send_bulk(path);
  link.rate_out = receive_numbers(path, 1)[0];
}

LinkCheck check_link(StartedLink& started, const Hello& ours) {
  LinkCheck link;
  link.site = started.site;
  link.peer_calls = started.peer_calls;
  link.reachable = started.up;
  link.error = started.problem;
  if (!started.up) return link;
  link.version = started.theirs.version;
  link.differences = differences(ours, started.theirs);
  link.waits_to_run = started.theirs.purpose == Purpose::kRun;
  if (link.waits_to_run || started.theirs.protocol != ours.protocol) return link;
  try {
    if (started.peer_calls)
      measure_as_called(started.path, link);
    else
      measure_as_caller(started.path, link);
  } catch (const wan::Error& error) {
    link.error = error.what();
  }
  return link;
}

}  // namespace

std::vector<LinkCheck> check_links(const RingPlan& plan) {
  RingPlan patient = plan;
  const auto shorten = [](wan::PathSettings& path) { path.patience = std::min(path.patience, kPatience); };
  shorten(patient.path);
  for (SitePlace& site : patient.sites)
    if (site.onward) shorten(site.onward->path);
  const double wait = plan.wait_limit > 0 ? plan.wait_limit : kDefaultWait;
  wan::Context context(2);
  return translate_errors([&] {
    LinkStart start(patient, Purpose::kCheck, context);
    start.run(false, wait);
    std::vector<LinkCheck> found(start.links().size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < found.size(); ++i)
      threads.emplace_back([&, i] {
        StartedLink& started = start.links()[i];
        found[i] = check_link(started, start.ours());
        if (started.path.valid()) started.path.close();
      });
    for (std::thread& thread : threads) thread.join();
    return found;
  });
}

// ---- the report of a check ------------------------------------------------------------------------------------------

namespace {

constexpr double kClocksApart = 5;         // seconds
constexpr double kAssumedRate = 1.25e8;    // bytes/s
constexpr double kAssumedRoundTrip = 0.3;  // seconds
constexpr std::uint64_t kOwnFiles = 128;   // of a run besides its streams
constexpr std::uint64_t kPartOfAKey =
    4;  // one key's streams may take the fourth part of all files (wan::ListenerLimits)

std::string rate_cell(double rate) { return rate > 0 ? fmt::format("{:.4g} Mbit/s", 8e-6 * rate) : "-"; }

std::string time_cell(double seconds) { return seconds > 0 ? fmt::format("{:.4g} ms", 1e3 * seconds) : "-"; }

std::string clock_cell(const LinkCheck& link) {
  return link.round_trip > 0 ? fmt::format("{:+.3f} s", link.clock_difference) : "-";
}

void add_once(std::vector<wan::Limit>& all, const wan::Limit& limit) {
  const auto same = [&](const wan::Limit& one) { return one.remedy == limit.remedy; };
  if (std::none_of(all.begin(), all.end(), same)) all.push_back(limit);
}

// The most streams that call this site with one key; with certificates or without security, all streams.
int streams_of_a_key(const RingPlan& plan) {
  std::map<std::string, int> streams;
  for (const int neighbour : neighbours(plan)) {
    if (!calls_us(plan, neighbour)) continue;
    const LinkPlan link = link_to(plan, neighbour);
    streams[link.security.key_files.empty() ? "" : link.security.key_files.front()] += link.path.streams;
  }
  int most = 0;
  for (const auto& [key, count] : streams) most = std::max(most, count);
  return most;
}

}  // namespace

std::vector<wan::Limit> limits_here(const RingPlan& plan, const std::vector<LinkCheck>& links,
                                    const wan::KernelLimits& kernel, std::uint64_t open_files) {
  std::vector<wan::Limit> all;
  const std::vector<int> near = neighbours(plan);
  int streams = 0;
  for (const int neighbour : near) {
    const wan::PathSettings path = link_to(plan, neighbour).path;
    streams += path.streams;
    const double intended = path.pacing_rate > 0 ? path.pacing_rate : kAssumedRate;
    const auto add = [&](double rate, double round_trip) {
      for (const wan::Limit& limit : limits_of(kernel, path, rate, round_trip)) add_once(all, limit);
    };
    bool measured = false;
    for (const LinkCheck& link : links) {
      if (link.site != neighbour || link.round_trip <= 0) continue;
      measured = true;
      const double rate = std::max({link.rate_in, link.rate_out, path.pacing_rate});
      add(rate > 0 ? rate : intended, link.round_trip);
    }
    if (!measured) add(intended, kAssumedRoundTrip);
  }
  // Reconnected streams exist twice for a while.
  std::uint64_t needed = kOwnFiles + 2 * static_cast<std::uint64_t>(streams);
  if (const int most = streams_of_a_key(plan); most > wan::kMaxStreams)  // any key may have this many
    needed = std::max(needed, kPartOfAKey * static_cast<std::uint64_t>(most));
  if (open_files < needed) {
    all.push_back({fmt::format("{} files may be open at once, and {} streams to {} neighbour{} need up to {}",
                               open_files, streams, near.size(), near.size() > 1 ? "s" : "", needed),
                   fmt::format("ulimit -n {}", std::max<std::uint64_t>(4096, std::bit_ceil(needed)))});
  }
  return all;
}

std::vector<std::string> problems_of(const RingPlan& plan, const std::vector<LinkCheck>& links) {
  std::vector<std::string> problems;
  for (const LinkCheck& link : links) {
    const std::string& name = plan.site(link.site).name;
    if (!link.reachable) {
      problems.push_back(fmt::format("site {} was not reached{}", name, link.error.empty() ? "" : ": " + link.error));
      continue;
    }
    for (const std::string& difference : link.differences) problems.push_back(difference);
    if (!link.error.empty())
      problems.push_back(fmt::format("the link to site {} was not measured: {}", name, link.error));
  }
  return problems;
}

std::vector<std::string> notes_on(const RingPlan& plan, const std::vector<LinkCheck>& links) {
  std::vector<std::string> notes;
  for (const LinkCheck& link : links) {
    if (!link.reachable) continue;
    if (std::abs(link.clock_difference) > kClocksApart) {
      notes.push_back(fmt::format("the clock of site {} is {:.0f} s {} this one's: times in the logs will not agree",
                                  plan.site(link.site).name, std::abs(link.clock_difference),
                                  link.clock_difference > 0 ? "ahead of" : "behind"));
    }
    if (link.waits_to_run) {
      notes.push_back(fmt::format("site {} waits to run already: nothing was measured (start 'maki sites check' there)",
                                  plan.site(link.site).name));
    }
  }
  return notes;
}

std::string link_table(const RingPlan& plan, const std::vector<LinkCheck>& links) {
  std::size_t width = 9;
  for (const LinkCheck& link : links) width = std::max(width, plan.site(link.site).name.size());
  const auto row = [&](const std::string& name, const std::string& reached, const std::string& configuration,
                       const std::string& clock, const std::string& round_trip, const std::string& paced,
                       const std::string& out, const std::string& in) {
    return fmt::format("{:<{}}  {:<20}  {:<13}  {:>10}  {:>10}  {:>14}  {:>14}  {:>14}\n", name, width, reached,
                       configuration, clock, round_trip, paced, out, in);
  };
  std::string text = row("neighbour", "", "configuration", "its clock", "round trip", "paced at", "out", "in");
  for (const LinkCheck& link : links) {
    const std::string way = link.peer_calls ? "it calls" : "we call";
    text += row(plan.site(link.site).name, link.reachable ? "reached, " + way : "NOT REACHED",
                !link.reachable            ? "-"
                : link.differences.empty() ? "the same"
                                           : "DIFFERENT",
                clock_cell(link), time_cell(link.round_trip), rate_cell(link_to(plan, link.site).path.pacing_rate),
                rate_cell(link.rate_out), rate_cell(link.rate_in));
  }
  return text;
}

}  // namespace maki::sites
