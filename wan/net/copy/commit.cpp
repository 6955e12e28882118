#include "wan/net/copy/commit.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace maki::wan::copy {
namespace {

constexpr std::size_t kMostFiles = 4096;
constexpr std::uint64_t kMaxBytes = 64 << 20;
constexpr std::chrono::seconds kMaxAge(3);
constexpr std::size_t kShares = 8;  // a copy holds so small a part of the files that the process may have open
constexpr std::size_t kSingle = 4;  // up to so many are synced one by one, which does not touch what others write

// By all copies of the process.
std::atomic<std::size_t> held{0};

// They are kept open.
std::size_t most_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kMostFiles;
  return std::clamp<std::size_t>(limit.rlim_cur / kShares, 16, kMostFiles);
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
  held -= items_.size() + handed_.size();
}

void Commit::add(Item item) {
  std::unique_lock lock(mutex_);
  if (items_.empty()) {
    oldest_ = Clock::now();
    changed_.notify_all();
  }
  bytes_ += item.file->size();
  items_.push_back(std::move(item));
  ++held;
  if (items_.size() >= most_files_ || bytes_ >= kMaxBytes || held > kShares / 2 * most_files_) flush(lock);
}

// Waits for those before: one group is collected while another is brought to the disk.
void Commit::flush(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return !busy_; });
  hand_over();
}

void Commit::hand_over() {
  if (items_.empty()) return;
  handed_ = std::move(items_);
  items_.clear();
  bytes_ = 0;
  busy_ = true;
  changed_.notify_all();
}

// A group that is old enough goes without waiting for more.
void Commit::run() {
  std::unique_lock lock(mutex_);
  while (busy_ || !ended_) {
    if (!busy_ && !items_.empty() && Clock::now() - oldest_ >= kMaxAge) hand_over();
    if (!busy_) {
      if (items_.empty())
        changed_.wait(lock);
      else
        changed_.wait_until(lock, oldest_ + kMaxAge);
      continue;
    }
    std::vector<Item> items = std::move(handed_);
    lock.unlock();
    const std::size_t count = items.size();
    commit(std::move(items));
    held -= count;
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
  {
    std::unique_lock lock(mutex_);
    flush(lock);
    flush(lock);  // nothing is left, and the thread has done it
  }
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
