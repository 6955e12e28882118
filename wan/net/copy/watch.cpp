#include "wan/net/copy/watch.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "wan/net/copy/incoming_file.hpp"
#include "wan/net/error.hpp"
#include "wan/net/log.hpp"

namespace maki::wan::copy {
namespace {

constexpr unsigned kEvents =
    IN_CLOSE_WRITE | IN_MODIFY | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ONLYDIR;

std::chrono::steady_clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

bool is_ignored(std::string_view name) {
  return name.starts_with('.') || name.ends_with(".part") || name.ends_with(".tmp");
}

Watch::Watch(const std::string& folder, double settle)
    : root_(folder), folder_(folder), settle_(duration_of(settle)), events_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (!events_.open())
    throw Error("cannot watch '" + printable(folder) + "'", std::strerror(errno), "see fs.inotify.max_user_instances");
}

Watch::~Watch() = default;

bool Watch::is_marked(const std::string& path, std::uint64_t size, std::int64_t mtime) const {
  const auto found = known_.find(path);
  return found != known_.end() && found->second == std::pair(size, mtime);
}

void Watch::scan() {
  if (lost_)
    for (auto& [path, file] : waiting_) file.open = false;  // its closing may be among what was lost
  lost_ = false;
  scan_folder("");
}

// Watched before it is read, so that nothing comes in between.
void Watch::scan_folder(const std::string& path) try {
  const int watch = inotify_add_watch(events_.number(), join(folder_, path).c_str(), kEvents);
  if (watch >= 0)
    watched_[watch] = path;
  else if (errno == ENOSPC)
    log_once(LogLevel::kWarning,
             "too many folders to watch (fs.inotify.max_user_watches): new files of some are found once a minute only");
  const Descriptor folder = root_.open_folder(path);
  struct Close {
    void operator()(DIR* stream) const { closedir(stream); }
  };
  const std::unique_ptr<DIR, Close> stream(fdopendir(dup(folder.number())));
  std::vector<std::string> folders;
  while (const dirent* item = stream ? readdir(stream.get()) : nullptr) {
    struct stat status;
    if (is_ignored(item->d_name) || fstatat(folder.number(), item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const std::string name = join(path, item->d_name);
    if (S_ISDIR(status.st_mode)) folders.push_back(name);
    if (S_ISREG(status.st_mode)) see_file(name, status);
  }
  for (const std::string& name : folders) scan_folder(name);
} catch (const FileProblem& problem) {
  if (path.empty()) throw Error(problem.what());
  log_once(LogLevel::kWarning, problem.what());
}

void Watch::see_file(const std::string& path, const struct stat& status) {
  if (waiting_.contains(path) || is_marked(path, static_cast<std::uint64_t>(status.st_size), mtime_of(status))) return;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const double age = static_cast<double>(now.tv_sec - status.st_mtim.tv_sec) +
                     1e-9 * static_cast<double>(now.tv_nsec - status.st_mtim.tv_nsec);
  // A time in the future says nothing about the age.
  const auto rest = settle_ - duration_of(std::clamp(age, 0.0, 1e6));
  waiting_[path] = {Clock::now() + std::max(rest, Clock::duration::zero()), false};
}

void Watch::forget_folder(const std::string& path) {
  for (auto it = watched_.begin(); it != watched_.end();) {
    const auto next = std::next(it);
    if (it->second == path || it->second.starts_with(path + "/")) {
      inotify_rm_watch(events_.number(), it->first);
      watched_.erase(it);
    }
    it = next;
  }
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
    waiting_[path].open = true;
  } else if (what & (IN_CLOSE_WRITE | IN_MOVED_TO)) {
    waiting_[path] = {Clock::now() + settle_, false};
  }
}

void Watch::read_events() {
  alignas(inotify_event) std::array<char, 64 << 10> buffer;
  for (;;) {
    const ssize_t got = read(events_.number(), buffer.data(), buffer.size());
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

std::vector<std::string> Watch::ready(double seconds, std::size_t most) {
  const auto end = Clock::now() + duration_of(seconds);
  for (;;) {
    read_events();
    std::vector<std::string> out;
    auto next = end;
    const auto now = Clock::now();
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      const auto& [path, file] = *it;
      if (!file.open && file.due <= now && out.size() < most) {
        out.push_back(path);
        it = waiting_.erase(it);
        continue;
      }
      if (!file.open) next = std::min(next, file.due);
      ++it;
    }
    if (!out.empty() || now >= end) return out;
    pollfd waiting{.fd = events_.number(), .events = POLLIN, .revents = 0};
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
    poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(rest, 0, 60000)));
  }
}

}  // namespace maki::wan::copy
