#include "wan/net/copy/sync.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "wan/net/copy/incoming_file.hpp"
#include "wan/net/error.hpp"
#include "wan/net/settings.hpp"

namespace maki::wan::copy {

// ---- complete files ------------------------------------------------------------------------------------------------

namespace {

constexpr unsigned kEvents =
    IN_CLOSE_WRITE | IN_MODIFY | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_EXCL_UNLINK | IN_ONLYDIR;

// Local file systems of Linux: their leases know all writers. Those of network file systems say "again" also for other
// reasons.
constexpr std::array<std::uint64_t, 8> kWithLeases = {EXT4_SUPER_MAGIC,      XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                                      F2FS_SUPER_MAGIC,      TMPFS_MAGIC,     RAMFS_MAGIC,
                                                      OVERLAYFS_SUPER_MAGIC, 0x2fc12fc1};  // the last: ZFS

bool has_leases(int descriptor) {
  struct statfs system;
  return fstatfs(descriptor, &system) == 0 &&
         std::ranges::find(kWithLeases, static_cast<std::uint64_t>(system.f_type)) != kWithLeases.end();
}

std::chrono::steady_clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

bool knows_writers(const std::string& folder) { return has_leases(Root(folder).folder("")->descriptor()); }

bool is_ignored(std::string_view name) {
  return name.starts_with('.') || name.ends_with(".part") || name.ends_with(".tmp");
}

Watch::Watch(const std::string& folder, double settle)
    : root_(folder), folder_(folder), settle_(duration_of(settle)), events_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (!events_.open())
    throw Error("cannot watch '" + printable(folder) + "'", std::strerror(errno), "see fs.inotify.max_user_instances");
}

bool Watch::is_marked(const std::string& path, std::uint64_t size, std::int64_t mtime) const {
  const auto found = known_.find(path);
  return found != known_.end() && found->second == std::pair(size, mtime);
}

void Watch::scan() {
  struct stat watched, named;
  if (fstat(root_.folder("")->descriptor(), &watched) != 0 || stat(folder_.c_str(), &named) != 0 ||
      named.st_ino != watched.st_ino || named.st_dev != watched.st_dev)
    throw Error("the folder '" + printable(folder_) + "' was removed or replaced", "", "begin again");
  // Files that nobody is known to write: the close event was lost, or truncate(2) has changed them, which has none. The
  // next event opens them again.
  for (auto& [path, file] : waiting_)
    if (file.open &&
        (lost_ ? is_written(path) != true : Clock::now() - file.due > settle_ && is_written(path) == false))
      file = {Clock::now() + settle_, false};
  lost_ = false;
  scan_folder("");
}

// Whether a process has the file open for writing: the kernel grants a lease only where none has. Empty where that is
// not known: the file is another user's, or not on a local file system.
std::optional<bool> Watch::is_written(const std::string& path) const try {
  struct stat status;
  const Descriptor file = root_.open_file(path, status);
  fcntl(file.descriptor(), F_SETSIG, SIGURG);  // ignored; a writer who comes now would else send SIGIO
  if (fcntl(file.descriptor(), F_SETLEASE, F_RDLCK) == 0) return false;  // until it is closed
  return errno == EAGAIN && has_leases(file.descriptor()) ? std::optional(true) : std::nullopt;
} catch (const FileProblem&) {
  return {};
}

// Watched before it is read, so that no event is missed in between.
void Watch::scan_folder(const std::string& path) try {
  const int watch = inotify_add_watch(events_.descriptor(), join(folder_, path).c_str(), kEvents);
  if (watch >= 0)
    watched_[watch] = path;
  else if (errno == ENOSPC)
    log_once(LogLevel::kWarning,
             "too many folders to watch (fs.inotify.max_user_watches): new files of some are found once a minute only");
  const Entries entries = root_.entries(path);
  std::vector<std::string> folders;
  while (const dirent* item = readdir(entries.get())) {
    struct stat status;
    if (is_ignored(item->d_name) || fstatat(dirfd(entries.get()), item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    const std::string name = join(path, item->d_name);
    if (S_ISDIR(status.st_mode)) folders.push_back(name);
    if (S_ISREG(status.st_mode)) see_file(name, status);
  }
  for (const std::string& name : folders) scan_folder(name);
} catch (const FileProblem& problem) {
  if (path.empty()) throw Error(problem.what());
  log_once(LogLevel::kWarning, problem.what());
}

// Marks a file as open that was opened before it was watched.
void Watch::see_file(const std::string& path, const struct stat& status) {
  if (waiting_.contains(path) || is_marked(path, static_cast<std::uint64_t>(status.st_size), mtime_of(status))) return;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const double age = static_cast<double>(now.tv_sec - status.st_mtim.tv_sec) +
                     1e-9 * static_cast<double>(now.tv_nsec - status.st_mtim.tv_nsec);
  // A time in the future says nothing about the age.
  const auto rest = settle_ - duration_of(std::clamp(age, 0.0, 1e6));
  if (is_written(path) == true)
    waiting_[path] = {Clock::now(), true};
  else
    waiting_[path] = {Clock::now() + std::max(rest, Clock::duration::zero()), false};
}

void Watch::forget_folder(const std::string& path) {
  std::erase_if(watched_, [&](const auto& folder) {
    const bool below = folder.second == path || folder.second.starts_with(path + "/");
    if (below) inotify_rm_watch(events_.descriptor(), folder.first);
    return below;
  });
}

void Watch::take_event(int watch, unsigned what, const std::string& name) {
  if (what & IN_Q_OVERFLOW) {
    lost_ = true;
    return;
  }
  const auto folder = watched_.find(watch);
  if (folder == watched_.end()) return;
  if (what & IN_IGNORED) {
    watched_.erase(folder);
    return;
  }
  if (name.empty() || is_ignored(name)) return;
  const std::string path = join(folder->second, name);
  if (what & IN_ISDIR) {
    if (what & (IN_MOVED_FROM | IN_DELETE)) forget_folder(path);
    if (what & (IN_CREATE | IN_MOVED_TO)) scan_folder(path);
    return;
  }
  if (what & (IN_DELETE | IN_MOVED_FROM)) {
    waiting_.erase(path);
    known_.erase(path);
  } else if (what & IN_MODIFY) {
    waiting_[path] = {Clock::now(), true};
  } else if (what & (IN_CLOSE_WRITE | IN_MOVED_TO)) {
    waiting_[path] = {Clock::now() + settle_, false};
  }
}

void Watch::read_events() {
  alignas(inotify_event) std::array<char, 64 << 10> buffer;
  for (;;) {
    const ssize_t got = read(events_.descriptor(), buffer.data(), buffer.size());
    if (got <= 0) break;
    for (ssize_t at = 0; at < got;) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* name = buffer.data() + at + sizeof event;
      take_event(event.wd, event.mask, event.len > 0 ? std::string(name) : std::string());
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
  }
  if (lost_) scan();
}

std::vector<std::string> Watch::incomplete() const {
  std::vector<std::string> paths;
  for (const auto& [path, file] : waiting_) paths.push_back(path);
  return paths;
}

std::vector<std::string> Watch::ready(double seconds, std::size_t most) {
  const auto end = Clock::now() + duration_of(seconds);
  for (;;) {
    read_events();
    std::vector<std::string> out;
    auto next = end;
    const auto now = Clock::now();
    for (auto it = waiting_.begin(); it != waiting_.end() && out.size() < most;) {
      const auto& [path, file] = *it;
      if (!file.open && file.due <= now) {
        out.push_back(path);
        it = waiting_.erase(it);
        continue;
      }
      if (!file.open) next = std::min(next, file.due);
      ++it;
    }
    if (!out.empty() || now >= end) return out;
    pollfd waiting{.fd = events_.descriptor(), .events = POLLIN, .revents = 0};
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
    poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(rest, 0, 60000)));
  }
}

// ---- shipping ------------------------------------------------------------------------------------------------------

namespace {

constexpr double kLongestPause = 30;
constexpr double kScanEvery = 60;  // seconds between full scans
constexpr double kIdle = 10;       // seconds; a server drops idle clients

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
  if (!options_.destination.ends_with('/')) options_.destination += '/';  // a single file keeps its name too
}

void Sync::log(const std::string& line) const {
  if (options_.log) options_.log(printable(line));
}

// A connection that once worked may work again, whatever the present error: name servers and network interfaces also
// fail, and a certificate may be replaced before its private key.
void Sync::connect() try {
  if (client_) return;
  auto client = std::make_shared<Client>(options_.connect());
  const std::lock_guard lock(mutex_);
  client_ = std::move(client);
  met_ = true;
} catch (const PathError& error) {
  if (!met_ && error.refused()) throw Error(error.what());
  throw;
} catch (const Error& error) {
  if (!met_) throw;
  throw PathError(error.what());
}

void Sync::leave() {
  std::shared_ptr<Client> client;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  client.swap(client_);
}

void Sync::break_off_when_stopped(const std::stop_token& ended) {
  for (; !ended.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(100))) {
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

// False if the path was lost. Files that failed for their own reasons are retried after the next scan.
bool Sync::ship(const std::vector<Candidate>& files) try {
  connect();
  const auto fresh = std::make_shared<const Root>(root_->folder(""));
  std::vector<Source> sources;
  for (const Candidate& file : files) sources.push_back({fresh, file.path, file.path});
  CopyOptions copy;
  copy.checksum = options_.checksum;
  copy.on_note = options_.on_note;
  const Counts counts = client_->push(std::move(sources), options_.destination, copy);
  if (counts.complete())
    for (const Candidate& file : files) watch_.mark(file.path, file.size, file.mtime);
  add(total_, counts);
  log(summary(counts));
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

// Files changed just now get their time to settle.
void Sync::ship_once() {
  std::vector<std::string> paths;
  const auto start = WallClock::now();
  for (bool all_taken = false; !stopped() && !all_taken;) {
    const bool late = seconds_since(start) > options_.settle + 1;  // what has settled by then is taken all the same
    const auto more = watch_.ready(0.2, kMostReady);
    paths.insert(paths.end(), more.begin(), more.end());
    all_taken = more.size() < kMostReady && (late || watch_.waiting() == 0);
  }
  leave_out(watch_.incomplete());
  std::sort(paths.begin(), paths.end());
  ship_until_there(still_there(paths));
}

void Sync::leave_out(const std::vector<std::string>& paths) {
  if (paths.empty()) return;
  constexpr std::size_t kNamed = 5;
  std::string names;
  for (std::size_t i = 0; i < std::min(paths.size(), kNamed); ++i) names += (i > 0 ? ", " : "") + paths[i];
  log(fmt::format("still being written, and left out: {}{}", names,
                  paths.size() > kNamed ? fmt::format(", and {} more", paths.size() - kNamed) : ""));
  total_.failed += paths.size();
}

Counts Sync::run() {
  watch_.scan();
  const std::jthread breaking_off([this](const std::stop_token& ended) { break_off_when_stopped(ended); });
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
    if (seconds_since(scanned) < kScanEvery) continue;
    watch_.scan();
    scanned = WallClock::now();
  }
}

}  // namespace maki::wan::copy
