// maki wan relay: joins two networks whose machines cannot reach each other.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <ctime>

#include "src/cli/commands.hpp"
#include "src/config/text.hpp"
#include "wan/net/error.hpp"
#include "wan/net/relay/relay.hpp"
#include "wan/net/settings.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki {
namespace {

struct Options {
  std::string listen, window, congestion;
  std::vector<std::string> keys, destinations;
  wan::RelaySettings settings;
};

// "NAME=HOST:PORT".
void add_destination(wan::RelaySettings& settings, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw CLI::ValidationError("--to " + text + " names no destination: write NAME=HOST:PORT");
  const bool added =
      settings.destinations.emplace(text.substr(0, equals), wan::Endpoint::parse(text.substr(equals + 1))).second;
  if (!added) throw CLI::ValidationError("--to " + text + ": there is a destination of that name already");
}

wan::RelaySettings read_settings(const Options& given) {
  wan::RelaySettings settings = given.settings;
  settings.listen = wan::Endpoint::parse(given.listen);
  settings.key_files = given.keys;
  for (const std::string& one : given.destinations) add_destination(settings, one);
  if (!given.window.empty()) settings.socket.window = wan::parse_size(given.window);
  settings.socket.congestion = given.congestion;
  return settings;
}

void raise_file_limit(const wan::RelaySettings& settings) {
  const std::uint64_t wanted = settings.descriptors(), allowed = wan::open_files(wanted);
  if (allowed < wanted)
    wan::log(wan::LogLevel::kWarning,
             fmt::format(
                 "{} open files are allowed, {} sessions may need {}: raise the limit (ulimit -n), or lower --sessions",
                 allowed, settings.sessions, wanted));
}

// Lines of the log above a last line that is redrawn each second (only on a terminal).
class Screen {
 public:
  Screen() : terminal_(isatty(STDERR_FILENO) == 1) {
    wan::set_log_sink([this](wan::LogLevel level, const std::string& text) { say(level, text); });
  }
  ~Screen() {
    progress("");
    wan::set_log_sink({});
  }
  void progress(const std::string& text) const {
    if (terminal_) fmt::print(stderr, "\r\033[K{}", text), std::fflush(stderr);
  }
  void say(wan::LogLevel level, const std::string& text) const {
    const char* mark = level == wan::LogLevel::kInfo ? "" : level == wan::LogLevel::kWarning ? "warning: " : "error: ";
    fmt::print(stderr, "{}{:%Y-%m-%d %H:%M:%S} {}{}\n", terminal_ ? "\r\033[K" : "", fmt::localtime(std::time(nullptr)),
               mark, text);
  }

 private:
  bool terminal_;
};

// Until a signal asks to end.
void watch(wan::Relay& relay, const Screen& screen, const sigset_t& signals) {
  std::uint64_t before = 0;
  const timespec second{1, 0};
  while (sigtimedwait(&signals, nullptr, &second) < 0) {
    const wan::RelayStatus now = relay.status();
    screen.progress(fmt::format("{} sessions ({} so far), {} hidden listeners, {} passed on, {}/s", now.sessions,
                                now.sessions_ever, now.names, wan::amount(now.bytes), wan::amount(now.bytes - before)));
    before = now.bytes;
  }
}

void run_relay(const Options& given) {
  const wan::RelaySettings settings = read_settings(given);
  raise_file_limit(settings);
  sigset_t signals;
  sigemptyset(&signals);
  for (int one : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, one);
  const Screen screen;
  wan::RelayStatus last;
  {
    // Signals are blocked first, so that an early one is not lost; later threads inherit this.
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    wan::Relay relay(settings);
    fmt::print("relay: listening on {}, {}; Ctrl-C ends it\n", relay.address().text(),
               settings.destinations.empty() ? "joins callers to hidden listeners"
                                             : fmt::format("knows {} destinations", settings.destinations.size()));
    for (const auto& [name, endpoint] : settings.destinations) fmt::print("  {} is {}\n", name, endpoint.text());
    std::fflush(stdout);
    watch(relay, screen, signals);
    last = relay.status();
  }
  fmt::print("relay: ended; {} sessions, {} passed on\n", last.sessions_ever, wan::amount(last.bytes));
}

}  // namespace

void add_wan_relay(CLI::App& wan) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      wan, "relay", "Join two networks: pass on the streams of peers that hold a key of the relay",
      "maki wan keygen relay.key                                    # for the relay and its peers, besides the paths' own keys\n"
      "  maki wan relay --listen :7000 --key relay.key\n"
      "  maki wan serve --root DIR --key site.key --relay HOST:7000 --relay-key relay.key --relay-target amsterdam\n"
      "  maki wan copy FILE amsterdam:6000/ --key site.key --relay HOST:7000 --relay-key relay.key --relay-target amsterdam\n"
      "(amsterdam:6000 is only a name then.) The relay sees no byte in clear: what passes is under the paths' own keys, which it does not have.",
      options, run_relay);
  wan::RelaySettings& settings = options->settings;
  command->add_option("--listen", options->listen, "to be called at (an empty address: any)")
      ->type_name("ADDRESS:PORT")
      ->required();
  command
      ->add_option(
          "--key", options->keys,
          "key file of peers that may use the relay, or a directory of *.key files; may be given more than once")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--to", options->destinations,
                   "a destination that peers may ask for by its name; may be given more than once")
      ->type_name("NAME=HOST:PORT");
  command->add_option("--sessions", settings.sessions, "at most so many connections passed on at once")
      ->capture_default_str();
  command
      ->add_option("--sessions-per-key", settings.sessions_per_key,
                   "at most so many of one key; 0: half of them where there are several keys, else all")
      ->capture_default_str();
  command->add_option("--half-open", settings.half_open, "at most so many connections that have not said who they are")
      ->capture_default_str();
  command->add_option("--idle", settings.idle_timeout, "seconds after which a session is ended in which nothing moves")
      ->capture_default_str()
      ->type_name("SECONDS");
  command->add_option("--threads", settings.threads, "that move bytes; 0: one a core, at most 4")
      ->capture_default_str();
  command->add_option("--window", options->window, "socket buffers, as \"4 MB\"; left to the kernel if not given")
      ->type_name("SIZE");
  command->add_option("--congestion", options->congestion, "congestion control of the sockets (bbr, cubic)")
      ->type_name("NAME");
}

}  // namespace maki
