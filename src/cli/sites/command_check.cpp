// maki sites check: whether the sites of a run can reach each other and agree on the run, and how fast their links are.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "kernels/error.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/sites/check_report.hpp"
#include "src/config/parse.hpp"
#include "src/run/over_sites.hpp"
#include "src/run/setup.hpp"
#include "wan/net/listener.hpp"
#include "wan/net/secure/key.hpp"
#include "wan/sites/ring_plan.hpp"

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

// The most streams that call this site with one key; with certificates or without security, all streams.
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
  // Reconnected streams exist twice for a while.
  std::uint64_t needed = kOwnFiles + 2 * static_cast<std::uint64_t>(streams);
  if (const int most = streams_of_a_key(plan); most > wan::kMaxStreams)  // any key may have this many
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

namespace {

constexpr int kSomethingIsWrong = 1;

struct Options {
  std::string config, site;
  std::vector<std::string> settings;
  bool no_measure = false;
  double wait = 0;
};

// Adds the error of `call`, if any.
template <class Call>
void try_out(std::vector<std::string>& problems, Call call) {
  try {
    call();
  } catch (const std::exception& error) {  // maki::Error or wan::Error
    problems.push_back(error.what());
  }
}

// Problems that show without the neighbours.
std::vector<std::string> problems_here(const sites::RingPlan& plan) {
  std::vector<std::string> problems;
  const sites::SitePlace& here = plan.sites[static_cast<std::size_t>(plan.me)];
  bool is_called = false;
  std::set<std::string> keys;
  for (const int neighbour : sites::neighbours(plan)) {
    is_called = is_called || sites::calls_us(plan, neighbour);
    for (const std::string& file : sites::link_to(plan, neighbour).security.key_files) keys.insert(file);
  }
  for (const std::string& file : keys) try_out(problems, [&] { wan::read_key(file); });
  if (!is_called) return problems;
  if (here.relay.used()) {
    try_out(problems, [&] { wan::read_key(here.relay.key_file); });
  } else if (problems.empty()) {
    const wan::Endpoint local = here.listen.port != 0 ? here.listen : wan::Endpoint{"", here.address.port};
    try_out(problems, [&] {
      const sites::LinkPlan listening = sites::listening_plan(plan);
      wan::Listener(local, listening.security, listening.path);
    });
  }
  return problems;
}

void print_list(const char* heading, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  fmt::print("\n{}\n", heading);
  for (const std::string& line : lines) fmt::print("  {}\n", line);
}

void print_limits(const std::vector<wan::Limit>& limits) {
  std::vector<std::string> lines;
  for (const wan::Limit& limit : limits) {
    lines.push_back(limit.what);
    if (!limit.remedy.empty()) lines.push_back("  " + limit.remedy);
  }
  print_list("What this machine is set to may slow the run; an administrator can set:", lines);
}

void check(const Options& given) {
  Config config = load_config(given.config, given.settings);
  const ThisSite site = choose_site(config, given.site);
  if (!site.over_sites())
    throw Error("there is nothing to check", "the configuration has no other sites", "give sites.ring");
  const Prepared run = prepare(config, false, Communicator::self());
  first_slabs(run, site.count);
  sites::RingPlan plan = make_ring_plan(run.config, site, "maki run");
  plan.report = [](const std::string& line) { fmt::print("{}\n", line), std::fflush(stdout); };
  if (given.wait > 0) plan.wait_limit = given.wait;
  plan.report(
      fmt::format("site {} of the ring {}, Maki {}", site.name, fmt::join(config.sites.ring, ", "), plan.version));

  std::vector<sites::LinkCheck> links;
  std::vector<std::string> problems = problems_here(plan), notes;
  if (problems.empty())
    if (const std::string warning = sites::shared_key_warning(plan); !warning.empty()) notes.push_back(warning);
  if (problems.empty() && !given.no_measure) {
    links = check_links(plan);
    fmt::print("\n{}", link_table(plan, links));
    problems = problems_of(plan, links);
  }
  print_limits(limits_here(plan, links, wan::KernelLimits::of_this_machine(), open_files_limit()));
  std::ranges::copy(notes_on(plan, links), std::back_inserter(notes));
  print_list("To know:", notes);
  print_list("What is wrong:", problems);
  if (!problems.empty()) throw CLI::RuntimeError(kSomethingIsWrong);
  fmt::print("\n{}\n",
             given.no_measure ? "Nothing is wrong at this site; its neighbours were not called." : "Nothing is wrong.");
}

}  // namespace

void add_sites_check(CLI::App& sites) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      sites, "check",
      "Before a run, at all sites at once: whether neighbours can be reached, keys, versions, configurations and "
      "clocks, how fast the links are, and what this machine is set to that slows them. Exit code 1: something is wrong",
      "maki sites check configs/two_sites.toml --site amsterdam      # and the same at the other sites", options,
      check);
  command->add_option("CONFIG", options->config, "configuration of the run (TOML)")->required();
  command->add_option("KEY=VALUE", options->settings, "settings that override the file's");
  command->add_option("--site", options->site, "which of the sites in [sites] this is")->type_name("NAME");
  command->add_flag("--no-measure", options->no_measure,
                    "look at this site alone: configuration, key, port and machine; the neighbours are not called");
  command->add_option("--wait", options->wait, "for the neighbours to start the same; else sites.wait, or a minute")
      ->type_name("SECONDS")
      ->check(CLI::Range(1.0, 86400.0));
}

void add_sites_commands(CLI::App& program) {
  CLI::App* sites = program.add_subcommand("sites", "One simulation over several sites: check them before a run");
  sites->require_subcommand(1);
  sites->footer("\nExample:\n  maki sites check configs/two_sites.toml --site amsterdam\n");
  add_sites_check(*sites);
}

}  // namespace maki
