// wan_testbed: sites on one machine, joined by emulated wide-area links, for the time of one command.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "tests/testbed/testbed.hpp"
#include "wan/net/error.hpp"
#include "wan/net/settings.hpp"
#include "wan/net/tune/bench.hpp"

namespace maki::testbed {
namespace {

struct Options {
  TestbedSettings testbed;
  std::string rtt = "270ms", rate = "800Mbit", queue, rmem = "0", wmem = "0", topology = "line";
  bool quiet = false;
};

void add_options(CLI::App& program, Options& o) {
  program.add_option("--sites", o.testbed.sites, "network namespaces, 2 to 64")->capture_default_str();
  program.add_option("--topology", o.topology, "which are joined: line (neighbours only), ring")->capture_default_str();
  program.add_option("--rtt", o.rtt, "round trip of each link")->capture_default_str();
  program.add_option("--rate", o.rate, "of IP packets, each way; 0: unbounded; one for each link: 100Mbit,400Mbit,...")
      ->capture_default_str();
  program.add_option("--queue", o.queue, "bytes before the line (default: rate x rtt / 2, at least 2MB)");
  program.add_option("--loss", o.testbed.link.loss, "probability of each packet")->check(CLI::Range(0.0, 1.0));
  program.add_option("--rmem", o.rmem, "net.ipv4.tcp_rmem's limit; 0: the machine's");
  program.add_option("--wmem", o.wmem, "net.ipv4.tcp_wmem's limit; 0: the machine's");
  program.add_flag("--quiet", o.quiet, "no counters at the end");
  program.footer(
      "wan_testbed [OPTIONS] -- COMMAND...   runs COMMAND with MAKI_SITES, MAKI_NS_i (for `ip netns exec`), MAKI_ADDR_i,\n"
      "                                      MAKI_ADDR6_i, MAKI_LINK_RATE, _RTT, _QUEUE, _LOSS\n"
      "wan_testbed clean                     removes what a killed testbed left behind");
}

// "800Mbit", "100MB": bits a second.
double bits_of(const std::string& rate) { return rate == "0" ? 0 : 8 * wan::parse_rate(rate + "/s"); }

void resolve(Options& o) {
  if (o.topology != "line" && o.topology != "ring")
    throw wan::Error("no topology '" + o.topology + "'", "", "line or ring");
  o.testbed.ring = o.topology == "ring";
  o.testbed.link.delay = wan::parse_seconds(o.rtt) / 2;
  const std::vector<std::string> rates = CLI::detail::split(o.rate, ',');
  o.testbed.link.rate = bits_of(rates.front());
  if (rates.size() > 1)
    for (const std::string& rate : rates) o.testbed.rates.push_back(bits_of(rate));
  o.testbed.link.queue = o.queue.empty() ? 0 : static_cast<double>(wan::parse_size(o.queue));
  o.testbed.kernel = tcp_limits(wan::parse_size(o.rmem), wan::parse_size(o.wmem));
}

void set_environment(const Testbed& testbed, const LinkSettings& link) {
  setenv("MAKI_LINK_RATE", fmt::format("{}", link.rate).c_str(), 1);  // bits a second
  setenv("MAKI_LINK_RTT", fmt::format("{}", 2 * link.delay).c_str(), 1);
  setenv("MAKI_LINK_QUEUE", fmt::format("{:.0f}", link.queue > 0 ? link.queue : link.default_queue()).c_str(), 1);
  setenv("MAKI_LINK_LOSS", fmt::format("{}", link.loss).c_str(), 1);
  setenv("MAKI_SITES", std::to_string(testbed.sites()).c_str(), 1);
  for (int i = 0; i < testbed.sites(); ++i) {
    setenv(fmt::format("MAKI_NS_{}", i).c_str(), testbed.site(i).name().c_str(), 1);
    setenv(fmt::format("MAKI_ADDR_{}", i).c_str(), testbed.address(i).c_str(), 1);
    setenv(fmt::format("MAKI_ADDR6_{}", i).c_str(), testbed.address6(i).c_str(), 1);
  }
}

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, s);
  return set;
}

pid_t start(const std::vector<std::string>& command, const sigset_t& before) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // the links end with us: so does what uses them
    sigprocmask(SIG_SETMASK, &before, nullptr);
    execvp(arguments[0], arguments.data());
    fmt::print(stderr, "wan_testbed: {} cannot be run ({})\n", command[0], std::strerror(errno));
    _exit(127);
  }
  if (child < 0) throw wan::Error("cannot start " + command[0], std::strerror(errno));
  return child;
}

// Passes signals on; returns when the command has ended, however it did.
int supervise(pid_t child, int signals) {
  for (;;) {
    signalfd_siginfo info;
    if (read(signals, &info, sizeof info) != sizeof info) continue;
    if (info.ssi_signo != SIGCHLD) kill(child, static_cast<int>(info.ssi_signo));
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

int run_testbed(Options& options, const std::vector<std::string>& command) {
  if (const std::string reason = why_not(); !reason.empty()) throw wan::Error("no emulated links here", reason);
  resolve(options);
  // Blocked before any thread starts, so that no signal ends us with namespaces left behind.
  const sigset_t signals = handled_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);
  const int descriptor = signalfd(-1, &signals, SFD_CLOEXEC);
  const Testbed testbed(options.testbed);
  set_environment(testbed, options.testbed.link);
  const int status = supervise(start(command, before), descriptor);
  close(descriptor);
  if (!options.quiet)
    fmt::print(stderr, "{}the emulator took {:.2f} s of CPU\n", counters_text(testbed), wan::cpu_seconds());
  return status;
}

int run(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "clean") {
    fmt::print("{} namespaces removed\n", remove_stale());
    return 0;
  }
  int own = 1;
  while (own < argc && std::string(argv[own]) != "--") ++own;
  CLI::App program("Sites on this machine, joined by emulated wide-area links.", "wan_testbed");
  Options options;
  add_options(program, options);
  CLI11_PARSE(program, own, argv);
  const std::vector<std::string> command(argv + std::min(argc, own + 1), argv + argc);
  if (command.empty()) throw wan::Error("nothing to run", "", "wan_testbed [OPTIONS] -- COMMAND...");
  return run_testbed(options, command);
}

}  // namespace
}  // namespace maki::testbed

int main(int argc, char** argv) {
  try {
    return maki::testbed::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "wan_testbed: error: {}\n", error.what());
    return 1;
  }
}
