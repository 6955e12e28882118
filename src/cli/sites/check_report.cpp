#include "src/cli/sites/check_report.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "wan/sites/link_plan.hpp"

namespace maki {
namespace {

constexpr double kClocksApart = 5;         // seconds
constexpr double kAssumedRate = 1.25e8;    // bytes/s
constexpr double kAssumedRoundTrip = 0.3;  // seconds
constexpr std::uint64_t kOwnFiles = 128;   // of a run besides its streams
constexpr std::uint64_t kPartOfAKey =
    4;  // one key's streams may take the fourth part of all files (wan::ListenerLimits)

const std::string& name_of(const sites::RingPlan& plan, const sites::LinkCheck& link) {
  return plan.sites[static_cast<std::size_t>(link.site)].name;
}

std::string rate_cell(double rate) { return rate > 0 ? fmt::format("{:.4g} Mbit/s", 8e-6 * rate) : "-"; }

std::string time_cell(double seconds) { return seconds > 0 ? fmt::format("{:.4g} ms", 1e3 * seconds) : "-"; }

std::string clock_cell(const sites::LinkCheck& link) {
  return link.reachable ? fmt::format("{:+.3f} s", link.clock_difference) : "-";
}

void add_once(std::vector<wan::Limit>& all, const wan::Limit& limit) {
  const auto same = [&](const wan::Limit& one) { return one.remedy == limit.remedy; };
  if (std::none_of(all.begin(), all.end(), same)) all.push_back(limit);
}

// The most that call this site with one key; where certificates or nothing tell callers apart, all of them.
int streams_of_a_key(const sites::RingPlan& plan) {
  std::map<std::string, int> streams;
  for (const int neighbour : sites::neighbours(plan)) {
    if (!calls_us(plan, neighbour)) continue;
    const sites::LinkPlan link = link_to(plan, neighbour);
    streams[link.security.key_files.empty() ? "" : link.security.key_files.front()] += link.path.streams;
  }
  int most = 0;
  for (const auto& [key, count] : streams) most = std::max(most, count);
  return most;
}

}  // namespace

std::uint64_t open_files_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return ~std::uint64_t{0};
  return limit.rlim_cur;
}

std::vector<wan::Limit> limits_here(const sites::RingPlan& plan, const std::vector<sites::LinkCheck>& links,
                                    const wan::KernelLimits& kernel, std::uint64_t open_files) {
  std::vector<wan::Limit> all;
  const std::vector<int> neighbours = sites::neighbours(plan);
  int streams = 0;
  for (const int neighbour : neighbours) {
    const wan::PathSettings path = link_to(plan, neighbour).path;
    streams += path.streams;
    const double intended = path.pacing_rate > 0 ? path.pacing_rate : kAssumedRate;
    const auto add = [&](double rate, double round_trip) {
      for (const wan::Limit& limit : limits_of(kernel, path, rate, round_trip)) add_once(all, limit);
    };
    for (const sites::LinkCheck& link : links) {
      if (link.site != neighbour || link.round_trip <= 0) continue;
      const double rate = std::max({link.rate_in, link.rate_out, path.pacing_rate});
      add(rate > 0 ? rate : intended, link.round_trip);
    }
    if (links.empty()) add(intended, kAssumedRoundTrip);
  }
  // Streams that are made anew are there twice for a while.
  std::uint64_t needed = kOwnFiles + 2 * static_cast<std::uint64_t>(streams);
  if (const int most = streams_of_a_key(plan); most > wan::kMaxStreams)  // so many any key may have
    needed = std::max(needed, kPartOfAKey * static_cast<std::uint64_t>(most));
  if (open_files < needed) {
    all.push_back({fmt::format("{} files may be open at once, and {} streams to {} neighbour{} need up to {}",
                               open_files, streams, neighbours.size(), neighbours.size() > 1 ? "s" : "", needed),
                   fmt::format("ulimit -n {}", std::max<std::uint64_t>(4096, std::bit_ceil(needed)))});
  }
  return all;
}

std::vector<std::string> problems_of(const sites::RingPlan& plan, const std::vector<sites::LinkCheck>& links) {
  std::vector<std::string> problems;
  for (const sites::LinkCheck& link : links) {
    const std::string& name = name_of(plan, link);
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

std::vector<std::string> notes_on(const sites::RingPlan& plan, const std::vector<sites::LinkCheck>& links) {
  std::vector<std::string> notes;
  for (const sites::LinkCheck& link : links) {
    if (!link.reachable) continue;
    if (std::abs(link.clock_difference) > kClocksApart) {
      notes.push_back(fmt::format("the clock of site {} is {:.0f} s {} this one's: times in the logs will not agree",
                                  name_of(plan, link), std::abs(link.clock_difference),
                                  link.clock_difference > 0 ? "ahead of" : "behind"));
    }
    if (link.waits_to_run) {
      notes.push_back(fmt::format("site {} waits to run already: nothing was measured (start 'maki sites check' there)",
                                  name_of(plan, link)));
    }
  }
  return notes;
}

std::string link_table(const sites::RingPlan& plan, const std::vector<sites::LinkCheck>& links) {
  std::size_t width = 9;
  for (const sites::LinkCheck& link : links) width = std::max(width, name_of(plan, link).size());
  const auto row = [&](const std::string& name, const std::string& reached, const std::string& configuration,
                       const std::string& clock, const std::string& round_trip, const std::string& paced,
                       const std::string& out, const std::string& in) {
    return fmt::format("{:<{}}  {:<20}  {:<13}  {:>10}  {:>10}  {:>14}  {:>14}  {:>14}\n", name, width, reached,
                       configuration, clock, round_trip, paced, out, in);
  };
  std::string text = row("neighbour", "", "configuration", "its clock", "round trip", "paced at", "out", "in");
  for (const sites::LinkCheck& link : links) {
    const std::string way = link.peer_calls ? "it calls" : "we call";
    text += row(name_of(plan, link), link.reachable ? "reached, " + way : "NOT REACHED",
                !link.reachable            ? "-"
                : link.differences.empty() ? "the same"
                                           : "DIFFERENT",
                clock_cell(link), time_cell(link.round_trip), rate_cell(link_to(plan, link.site).path.pacing_rate),
                rate_cell(link.rate_out), rate_cell(link.rate_in));
  }
  return text;
}

}  // namespace maki
