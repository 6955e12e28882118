#include "wan/net/copy/commit.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace maki::wan::copy {
namespace {

constexpr std::uint64_t kMaxBytes = 64 << 20;
constexpr double kMaxAge = 1;       // seconds
constexpr std::size_t kSingle = 4;  // up to so many are synced one by one, which does not touch what others write

// They are kept open: a part of what the process may have.
std::size_t most_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 512;
  return std::clamp<std::size_t>(limit.rlim_cur / 8, 16, 512);
}

dev_t device_of(const Folder& folder) {
  struct stat status;
  return fstat(folder->number(), &status) == 0 ? status.st_dev : 0;
}

}  // namespace

void Commit::add(Item item) {
  if (items_.empty()) oldest_ = std::chrono::steady_clock::now();
  bytes_ += item.file->size();
  items_.push_back(std::move(item));
  if (items_.size() >= most_files() || bytes_ >= kMaxBytes) flush();
}

void Commit::look() {
  if (!items_.empty() && std::chrono::duration<double>(std::chrono::steady_clock::now() - oldest_).count() > kMaxAge)
    flush();
}

// Files that could not be brought there are reported and leave items_.
void Commit::bring_to_disk() {
  std::map<dev_t, int> synced;  // an error of each disk, or 0
  std::vector<Item> good;
  for (Item& item : items_) try {
      if (items_.size() <= kSingle) {
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
  items_ = std::move(good);
}

void Commit::flush() {
  bring_to_disk();
  for (Item& item : items_) try {
      item.file->publish();
      const Folder& folder = item.file->folder();
      disks_.emplace(device_of(folder), folder);
      if (folders_.size() <= kSingle && std::find(folders_.begin(), folders_.end(), folder) == folders_.end())
        folders_.push_back(folder);
      done_(item);
    } catch (const FileProblem& problem) {
      fail_(item, problem.what());
    }
  items_.clear();
  bytes_ = 0;
}

void Commit::finish() {
  flush();
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
