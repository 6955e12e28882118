#include "wan/net/copy/sync.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "wan/net/copy/incoming_file.hpp"
#include "wan/net/wall_clock.hpp"

namespace maki::wan::copy {
namespace {

constexpr double kLongestPause = 30;
constexpr double kIdle = 10;  // seconds; a server sends away who wants nothing

void add(Counts& total, const Counts& counts) {
  total.files += counts.files;
  total.bytes += counts.bytes;
  total.skipped += counts.skipped;
  total.skipped_bytes += counts.skipped_bytes;
  total.failed += counts.failed;
}

}  // namespace

Sync::Sync(SyncOptions options)
    : options_(std::move(options)), root_(std::make_shared<const Root>(options_.folder)),
      watch_(options_.folder, options_.settle) {
  if (!options_.destination.ends_with('/')) options_.destination += '/';  // one file alone keeps its name too
}

void Sync::log(const std::string& line) const {
  if (options_.log) options_.log(printable(line));
}

// What has worked before may work again, whatever is wrong now: a name server or a network interface can be away too.
void Sync::connect() try {
  if (client_) return;
  auto client = std::make_shared<Client>(options_.connect());
  const std::lock_guard lock(mutex_);
  client_ = std::move(client);
  met_ = true;
} catch (const SecurityError&) {
  throw;
} catch (const PathError&) {
  throw;
} catch (const Error& error) {
  if (!met_) throw;
  throw PathError(error.what());
}

void Sync::leave() {
  std::shared_ptr<Client> client;  // ends after the lock
  const std::lock_guard lock(mutex_);
  client.swap(client_);
}

void Sync::break_off_when_stopped() {
  for (; !ended_; std::this_thread::sleep_for(std::chrono::milliseconds(100))) {
    if (!stopped()) continue;
    std::shared_ptr<Client> client;
    {
      const std::lock_guard lock(mutex_);
      client = client_;
    }
    if (client) client->channel().give_up();
  }
}

std::vector<Sync::Candidate> Sync::still_there(const std::vector<std::string>& paths) const {
  std::vector<Candidate> out;
  const Root fresh(root_->folder(""));  // folders come and go
  for (const std::string& path : paths) try {
      struct stat status;
      if (!fresh.look(path, status) || !S_ISREG(status.st_mode)) continue;
      const Candidate file{path, static_cast<std::uint64_t>(status.st_size), mtime_of(status)};
      if (!watch_.is_marked(path, file.size, file.mtime)) out.push_back(file);
    } catch (const FileProblem& problem) {
      log(problem.what());
    }
  return out;
}

// False where the path was lost. What failed for its own reasons is tried again after the next scan.
bool Sync::ship(const std::vector<Candidate>& files) try {
  connect();
  const auto fresh = std::make_shared<const Root>(root_->folder(""));
  std::vector<Source> sources;
  for (const Candidate& file : files) sources.push_back({fresh, file.path, file.path});
  CopyOptions copy;
  copy.checksum = options_.checksum;
  copy.on_note = options_.on_note;
  const CopyReport report = client_->push(std::move(sources), options_.destination, copy);
  if (report.complete())
    for (const Candidate& file : files) watch_.mark(file.path, file.size, file.mtime);
  add(total_, report.counts);
  log(summary(report.counts));
  shipped_ = WallClock::now();
  return true;
} catch (const PathError& error) {
  leave();
  if (stopped()) return false;
  if (options_.once) throw;
  log(fmt::format("{}; connecting again", error.what()));
  return false;
}

bool Sync::pause(double seconds) {
  const auto start = WallClock::now();
  while (!stopped() && seconds_since(start) < seconds) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  return !stopped();
}

void Sync::ship_until_there(const std::vector<Candidate>& files) {
  double wait = 1;
  while (!files.empty() && !ship(files)) {
    if (!pause(wait)) return;
    wait = std::min(2 * wait, kLongestPause);
  }
}

// Files that were changed just now get their time to settle.
void Sync::ship_once() {
  std::vector<std::string> paths;
  const auto start = WallClock::now();
  do {
    const auto more = watch_.ready(0.2);
    paths.insert(paths.end(), more.begin(), more.end());
  } while (watch_.waiting() > 0 && seconds_since(start) < options_.settle + 1 && !stopped());
  if (watch_.waiting() > 0) log(fmt::format("{} files are still being written, and left out", watch_.waiting()));
  std::sort(paths.begin(), paths.end());
  ship_until_there(still_there(paths));
}

Counts Sync::run() {
  watch_.scan();
  struct Ending {
    Sync& sync;
    std::thread thread;
    ~Ending() {
      sync.ended_ = true;
      thread.join();
    }
  } breaking_off{*this, std::thread([this] { break_off_when_stopped(); })};
  if (options_.once)
    ship_once();
  else
    run_until_stopped();
  return total_;
}

void Sync::run_until_stopped() {
  auto scanned = WallClock::now();
  while (!stopped()) {
    ship_until_there(still_there(watch_.ready(0.5)));
    if (client_ && seconds_since(shipped_) > kIdle) leave();
    if (seconds_since(scanned) < options_.scan_every) continue;
    watch_.scan();
    scanned = WallClock::now();
  }
}

}  // namespace maki::wan::copy
