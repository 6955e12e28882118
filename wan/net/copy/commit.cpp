#include "wan/net/copy/commit.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace maki::wan::copy {
namespace {

constexpr std::size_t kMostFiles = 4096;
constexpr std::uint64_t kMaxBytes = 64 << 20;
constexpr double kMaxAge = 3;       // seconds
constexpr std::size_t kSingle = 4;  // up to so many are synced one by one, which does not touch what others write

// They are kept open: a part of what the process may have.
std::size_t most_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kMostFiles;
  return std::clamp<std::size_t>(limit.rlim_cur / 8, 16, kMostFiles);
}

dev_t device_of(const Folder& folder) {
  struct stat status;
  return fstat(folder->number(), &status) == 0 ? status.st_dev : 0;
}

}  // namespace

Commit::Commit(Done done, Fail fail)
    : done_(std::move(done)), fail_(std::move(fail)), most_files_(most_files()), thread_([this] { run(); }) {}

Commit::~Commit() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Commit::add(Item item) {
  if (items_.empty()) oldest_ = std::chrono::steady_clock::now();
  bytes_ += item.file->size();
  items_.push_back(std::move(item));
  if (items_.size() >= most_files_ || bytes_ >= kMaxBytes) flush();
}

void Commit::look() {
  const auto age = std::chrono::steady_clock::now() - oldest_;
  if (!items_.empty() && std::chrono::duration<double>(age).count() > kMaxAge) flush();
}

// Waits for those before: one group is collected while another is brought to the disk.
void Commit::flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
  if (items_.empty()) return;
  handed_ = std::move(items_);
  items_.clear();
  bytes_ = 0;
  busy_ = true;
  changed_.notify_all();
}

void Commit::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return busy_ || ended_; });
    if (!busy_) return;
    std::vector<Item> items = std::move(handed_);
    lock.unlock();
    commit(std::move(items));
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

// Gives those that are there; the others are reported.
std::vector<Commit::Item> Commit::bring_to_disk(std::vector<Item> items) {
  std::map<dev_t, int> synced;  // an error of each disk, or 0
  std::vector<Item> good;
  for (Item& item : items) try {
      if (items.size() <= kSingle) {
        item.file->sync();
      } else {
        const auto [place, first] = synced.emplace(device_of(item.file->folder()), 0);
        if (first && syncfs(item.file->folder()->number()) != 0) place->second = errno;
        if (place->second != 0) throw_problem("cannot bring to the disk", item.file->path(), place->second);
      }
      good.push_back(std::move(item));
    } catch (const FileProblem& problem) {
      fail_(item, problem.what());
    }
  return good;
}

void Commit::commit(std::vector<Item> items) {
  for (Item& item : bring_to_disk(std::move(items))) try {
      item.file->publish();
      const Folder& folder = item.file->folder();
      disks_.emplace(device_of(folder), folder);
      if (folders_.size() <= kSingle && std::find(folders_.begin(), folders_.end(), folder) == folders_.end())
        folders_.push_back(folder);
      done_(item);
    } catch (const FileProblem& problem) {
      fail_(item, problem.what());
    }
}

void Commit::finish() {
  flush();
  flush();  // nothing is left, and the thread has done it
  const bool few = folders_.size() <= kSingle;
  if (few) {
    for (const Folder& folder : folders_)
      if (fsync(folder->number()) != 0) throw_problem("cannot bring to the disk", "a folder", errno);
  } else {
    for (const auto& [device, folder] : disks_)
      if (syncfs(folder->number()) != 0) throw_problem("cannot bring to the disk", "a folder", errno);
  }
  folders_.clear();
  disks_.clear();
}

}  // namespace maki::wan::copy
