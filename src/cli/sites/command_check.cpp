// maki sites check: whether the sites of a run can reach each other and agree on the run, and how fast their links are.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "kernels/error.hpp"
#include "src/cli/commands.hpp"
#include "src/config/parse.hpp"
#include "src/run/over_sites.hpp"
#include "src/run/setup.hpp"
#include "wan/net/listener.hpp"
#include "wan/net/secure/key.hpp"
#include "wan/net/socket/tcp.hpp"
#include "wan/sites/link_check.hpp"

namespace maki {

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
  const sites::SitePlace& here = plan.here();
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
  plan.report = say;
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
  print_limits(limits_here(plan, links, wan::KernelLimits::of_this_machine(), wan::open_files()));
  std::ranges::copy(notes_on(plan, links), std::back_inserter(notes));
  print_list("To know:", notes);
  print_list("What is wrong:", problems);
  if (!problems.empty()) throw CLI::RuntimeError(kSomethingIsWrong);
  fmt::print("\n{}\n",
             given.no_measure ? "Nothing is wrong at this site; its neighbours were not called." : "Nothing is wrong.");
}

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

}  // namespace

void add_sites_commands(CLI::App& program) {
  CLI::App* sites = program.add_subcommand("sites", "One simulation over several sites: check them before a run");
  sites->require_subcommand(1);
  sites->footer("\nExample:\n  maki sites check configs/two_sites.toml --site amsterdam\n");
  add_sites_check(*sites);
}

}  // namespace maki
