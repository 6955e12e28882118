// maki wan serve, copy and sync: files between sites.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

#include "src/cli/commands.hpp"
#include "src/cli/wan/path_options.hpp"
#include "src/io/run_directory.hpp"
#include "wan/net/copy/client.hpp"
#include "wan/net/copy/server.hpp"
#include "wan/net/copy/sync.hpp"
#include "wan/net/error.hpp"
#include "wan/net/settings.hpp"

namespace maki {
namespace {

constexpr int kSomeFailed = 1;

// Many received files are open at a time, until they are on the disk.
void allow_many_files() { wan::open_files(~std::uint64_t{0}); }

wan::Path connect(const wan::Endpoint& host, const PathChoices& choices, double within = 0) {
  return wan::Path::connect(host, choices.security, choices.settings, {host_name(), choices.relay, within});
}

// Limits memory to what a copy needs for data in transit.
PathChoices read_copy_options(const PathOptions& given) {
  PathChoices choices = read_path_options(given);
  auto& unmatched = choices.settings.unmatched_limit;
  unmatched = std::min(unmatched, wan::copy::MessageChannel::kUnmatched);
  return choices;
}

// ---- progress of a copy: on a terminal one line that is overwritten, elsewhere a line every few seconds -------------

constexpr int kMostNotes = 100;

class CopyScreen {
 public:
  // Without progress lines where `quiet`; problems are always shown.
  CopyScreen(wan::copy::Meter meter, bool quiet);
  ~CopyScreen() { end(); }

  void note(bool failed, const std::string& text);  // any thread; after a hundred notes only the first of each kind
  void end();                                       // no line is overwritten any more

 private:
  void run();
  void draw();
  void wipe();

  wan::copy::Meter meter_;
  bool quiet_, terminal_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  bool drawn_ = false;
  int notes_ = 0, problems_ = 0;
  std::thread thread_;
};

CopyScreen::CopyScreen(wan::copy::Meter meter, bool quiet)
    : meter_(std::move(meter)), quiet_(quiet), terminal_(isatty(STDOUT_FILENO) == 1) {
  if (!quiet_) thread_ = std::thread([this] { run(); });
}

void CopyScreen::run() {
  const auto period = terminal_ ? std::chrono::milliseconds(250) : std::chrono::milliseconds(5000);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, period, [this] { return ended_; })) draw();
}

void CopyScreen::draw() {
  const std::string line = meter_.line();
  fmt::print("{}{}{}", terminal_ ? "\r" : "", line, terminal_ ? "\x1b[K" : "\n");
  std::fflush(stdout);
  drawn_ = terminal_;
}

void CopyScreen::wipe() {
  if (drawn_) fmt::print("\r\x1b[K"), std::fflush(stdout);
  drawn_ = false;
}

void CopyScreen::note(bool failed, const std::string& text) {
  const std::lock_guard lock(mutex_);
  const int count = ++(failed ? problems_ : notes_);
  if (count > kMostNotes || (quiet_ && !failed)) return;
  wipe();
  fmt::print(stderr, "maki: {}{}{}\n", failed ? "not copied: " : "", text,
             count == kMostNotes ? " (no more of these are shown)" : "");
}

void CopyScreen::end() {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  wipe();
}

// ---- the commands ---------------------------------------------------------------------------------------------------

struct ServeOptions {
  std::string listen;
  ShareOptions shares;
  bool perms = false;
  wan::copy::SessionLimits limits;
  PathOptions path;
};

void run_serve(const ServeOptions& given) {
  PathOptions path = given.path;
  path.more_keys = keys_of(given.shares);
  const PathChoices choices = read_copy_options(path);
  allow_many_files();
  const auto interrupted = end_on_signals();
  wan::copy::ServerOptions options;
  set_shares(given.shares, choices.security, options);
  options.perms = given.perms;
  options.limits = given.limits;
  options.limits.all = 4 * given.limits.of_each;
  options.log = say;
  wan::copy::Server server(options);
  if (given.listen.empty() && !choices.relay.used())
    throw CLI::ValidationError("give --listen ADDRESS:PORT to be called at, or a relay to be called through");
  if (!given.listen.empty() && choices.relay.used())
    throw CLI::ValidationError("--listen and a relay: a server is called at an address or through a relay, give one");
  const wan::Endpoint local = given.listen.empty() ? wan::Endpoint{} : wan::Endpoint::parse(given.listen);
  wan::Listener listener(local, choices.security, choices.settings, {}, choices.relay);
  for (const std::string& line : shares_text(options)) say(line);
  say(fmt::format("serving on {}{} (Ctrl-C ends it)",
                  choices.relay.used() ? "the relay as " + choices.relay.target : listener.address().text(),
                  choices.security.insecure ? ", without encryption" : ""));
  const std::jthread watching([&](const std::stop_token& over) {
    while (!interrupted() && !over.stop_requested()) usleep(100000);
    server.stop();
  });
  server.run(listener);
}

// SOURCE... DEST is one list, whose name says already that there may be many.
class CopyUsage : public CLI::Formatter {
  std::string make_option_usage(const CLI::Option* option) const override { return make_option_name(option, true); }
};

struct CopyCommand {
  std::vector<std::string> names;  // the sources, then the destination
  bool checksum = false, perms = false, quiet = false;
  PathOptions path;
};

[[noreturn]] void throw_sides() {
  throw CLI::ValidationError(
      "exactly one side of a copy is remote, HOST:PORT/path: all sources, of one HOST:PORT, or the destination (a "
      "local name with a colon is given as ./NAME)");
}

wan::copy::Counts copy_by(wan::copy::Client& client, const std::vector<std::string>& sources,
                          const std::vector<RemotePath>& remote, const std::string& destination,
                          const wan::copy::CopyOptions& options) {
  if (remote.empty()) return client.push(sources, parse_remote(destination)->path, options);
  std::vector<std::string> paths;
  for (const RemotePath& one : remote) paths.push_back(one.path);
  return client.pull(paths, destination, options);
}

void run_copy(const CopyCommand& given) {
  const PathChoices choices = read_copy_options(given.path);
  std::vector<std::string> sources = given.names;
  const std::string destination = sources.back();
  sources.pop_back();
  std::vector<RemotePath> remote;
  for (const std::string& source : sources)
    if (auto there = parse_remote(source)) remote.push_back(*there);
  const auto to = parse_remote(destination);
  if (to ? !remote.empty() : remote.size() != sources.size()) throw_sides();
  for (const RemotePath& one : remote)
    if (one.host != remote[0].host) throw_sides();
  // Local errors are reported before any call.
  if (to)
    for (const std::string& source : sources) wan::copy::local_source(source);

  allow_many_files();
  wan::copy::Progress progress;
  wan::copy::Client client(connect(to ? to->host : remote[0].host, choices));
  CopyScreen screen({progress, [&] { return client.channel().under_way(); }}, given.quiet);
  wan::copy::CopyOptions options;
  options.checksum = given.checksum;
  options.perms = given.perms;
  options.progress = &progress;
  options.on_note = [&](bool failed, const std::string& text) { screen.note(failed, text); };
  const auto start = std::chrono::steady_clock::now();
  const wan::copy::Counts counts = copy_by(client, sources, remote, destination, options);
  screen.end();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!given.quiet)
    say(fmt::format("copied {}; {:.1f} s, {}/s", wan::copy::summary(counts), seconds,
                    wan::amount(static_cast<std::uint64_t>(static_cast<double>(counts.bytes) / seconds))));
  if (!counts.complete()) throw CLI::RuntimeError(kSomeFailed);
}

struct SyncCommand {
  std::string folder, destination;
  double settle = 2;
  bool once = false, checksum = false;
  PathOptions path;
};

// Seconds of one attempt: short enough to react to signals between attempts.
constexpr double kAttempt = 10;

void run_sync(const SyncCommand& given) {
  const PathChoices choices = read_copy_options(given.path);
  const auto to = parse_remote(given.destination);
  if (!to) throw CLI::ValidationError("the destination of a sync is remote, HOST:PORT/path");
  wan::copy::SyncOptions options;
  options.folder = given.folder;
  options.destination = to->path;
  options.settle = given.settle;
  options.once = given.once;
  options.checksum = given.checksum;
  options.connect = [&] { return connect(to->host, choices, given.once ? 0 : kAttempt); };
  if (!given.once) options.stop = end_on_signals();
  options.log = say;
  wan::PeerLog problems([](const std::string& line) { fmt::print(stderr, "maki: not copied: {}\n", line); });
  options.on_note = [&](bool failed, const std::string& text) {
    if (failed) problems.mention(text, "files");
  };
  wan::copy::Sync sync(options);
  if (!given.once) say(fmt::format("watching {} for {} (Ctrl-C ends it)", given.folder, given.destination));
  const wan::copy::Counts counts = sync.run();
  say(fmt::format("shipped {}", wan::copy::summary(counts)));
  if (counts.failed > 0 && given.once) throw CLI::RuntimeError(kSomeFailed);
}

}  // namespace

void add_wan_serve(CLI::App& wan) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command =
      add_command(wan, "serve", "Serve folders, and nothing outside of them, to copy and sync",
                  "maki wan serve --root /data/shared --listen :6000 --key site.key\n"
                  "  maki wan serve --listen :6000 --allow leiden.key:/data/leiden:rw --allow tokyo.key:/data/public",
                  options, run_serve);
  add_share_options(*command, options->shares);
  command->add_option("--listen", options->listen,
                      "ADDRESS:PORT to be called at (an empty address: any); none is needed behind a relay");
  command->add_flag("-p,--perms", options->perms,
                    "take execute bits, and writing by group and others, as clients say (without: at most rw-r--r--)");
  command
      ->add_option("--sessions", options->limits.of_each,
                   "clients at once with each key, and four times as many in all; each may take 200 MB of memory")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_path_options(*command, options->path);
}

void add_wan_copy(CLI::App& wan) {
  auto options = std::make_shared<CopyCommand>();
  CLI::App* command = add_command(
      wan, "copy", "Copy files and folders to or from a served folder; the same command continues what was interrupted",
      "maki wan copy output/run1 OTHER-SITE:6000/runs --key site.key\n"
      "  maki wan copy OTHER-SITE:6000/runs/run1/ here --key site.key   # a slash at the end: what is in it",
      options, run_copy);
  command->formatter(std::make_shared<CopyUsage>());
  command->add_option("SOURCE... DEST", options->names, "here, or there as HOST:PORT/path ([::1]:PORT/path)")
      ->required()
      ->expected(2, -1);
  command->add_flag("--checksum", options->checksum, "compare contents also where size and time agree");
  command->add_flag(
      "-p,--perms", options->perms,
      "fetching: take execute bits, and writing by group and others, as the server says (without: at most "
      "rw-r--r--); of what is brought, 'maki wan serve --perms' decides");
  command->add_flag("-q,--quiet", options->quiet, "say only what was not copied");
  add_path_options(*command, options->path);
}

void add_wan_sync(CLI::App& wan) {
  auto options = std::make_shared<SyncCommand>();
  CLI::App* command =
      add_command(wan, "sync", "Watch a folder and ship each file as soon as it is complete",
                  "maki wan sync output/run1 OTHER-SITE:6000/runs/run1 --key site.key", options, run_sync);
  command->add_option("DIR", options->folder, "folder to watch, with those in it")->required();
  command->add_option("HOST:PORT/path", options->destination, "folder there that its files go into")->required();
  command->add_option("--settle", options->settle, "seconds that a file must have been left alone")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  command->add_flag("--once", options->once, "ship what is there, and end");
  command->add_flag("--checksum", options->checksum, "compare contents also where size and time agree");
  add_path_options(*command, options->path);
}

}  // namespace maki
