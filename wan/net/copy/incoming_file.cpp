#include "wan/net/copy/incoming_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>

namespace maki::wan::copy {

// ---- who writes which file -----------------------------------------------------------------------------------------

std::shared_ptr<Lease> Leases::take(dev_t device, ino_t inode, const std::string& name) {
  auto lease = std::make_shared<Lease>();
  std::shared_ptr<Lease> before;
  {
    const std::lock_guard lock(mutex_);
    if (leases_.size() >= swept_) {
      std::erase_if(leases_, [](const auto& entry) { return entry.second.expired(); });
      swept_ = std::max<std::size_t>(1024, 2 * leases_.size());
    }
    auto& place = leases_[{device, inode, name}];
    before = place.lock();
    place = lease;
  }
  if (before) {
    const std::lock_guard lock(before->mutex);
    before->lost = true;
    before->file.close();  // releases its lock
  }
  return lease;
}

// ---- one file ------------------------------------------------------------------------------------------------------

namespace {

constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
constexpr std::uint64_t kStartWriting = 32 << 20;   // bytes after which write-back to the disk begins
constexpr std::uint64_t kWorthKeeping = 256 << 10;  // a smaller unfinished file is deleted when the disk is full

void set_time_and_mode(int file, std::int64_t mtime, std::uint32_t mode, const std::string& path) {
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, time_of(mtime)};
  if (futimens(file, times) != 0) throw_problem("cannot set the time of", path, errno);
  if (fchmod(file, mode & 0777) != 0) throw_problem("cannot set the mode of", path, errno);
}

}  // namespace

timespec time_of(std::int64_t nanoseconds) {
  constexpr std::int64_t kSecond = 1000000000;
  std::int64_t seconds = nanoseconds / kSecond, rest = nanoseconds % kSecond;
  if (rest < 0) {
    rest += kSecond;
    --seconds;
  }
  return {.tv_sec = seconds, .tv_nsec = rest};
}

std::int64_t mtime_of(const struct stat& status) {
  constexpr std::int64_t kLatest = 9223372035;  // seconds that fit, April of 2262
  return std::clamp<std::int64_t>(status.st_mtim.tv_sec, -kLatest, kLatest) * 1000000000 + status.st_mtim.tv_nsec;
}

std::optional<Partial> read_partial(const Folder& folder, const std::string& path, const Check& check) {
  const std::string part = part_name(last_of(path));
  const Descriptor file(openat(folder->descriptor(), part.c_str(), O_RDONLY | kFlags));
  struct stat status;
  if (!file.open() || fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
    return {};
  Partial partial;
  partial.mtime = mtime_of(status);
  partial.size = digest_file(file.descriptor(), static_cast<std::uint64_t>(status.st_size), partial.digester, check);
  if (errno != 0 || partial.size == 0) return {};
  return partial;
}

void set_properties(const Folder& folder, const std::string& path, std::int64_t mtime, std::uint32_t mode) {
  const Descriptor file(openat(folder->descriptor(), std::string(last_of(path)).c_str(), O_RDONLY | kFlags));
  if (!file.open()) throw_problem("cannot open", path, errno);
  set_time_and_mode(file.descriptor(), mtime, mode, path);
}

IncomingFile::IncomingFile(Folder folder, std::string path, std::shared_ptr<Lease> lease, const Begin& begin,
                           std::optional<Partial> partial)
    : folder_(std::move(folder)), path_(std::move(path)), name_(last_of(path_)), part_(part_name(name_)),
      lease_(std::move(lease)), begin_(begin), position_(begin.offset), started_(begin.offset) {
  const auto lock = mine();
  open_part();
  struct stat status;
  if (fstat(file(), &status) != 0) throw_problem("cannot look at", path_, errno);
  if (begin.offset > 0) {
    if (!partial || mtime_of(status) != partial->mtime)
      throw FileProblem("'" + printable(path_) + "' is being written by another copy; copy it again");
    digester_ = std::move(partial->digester);
  }
  // Only where needed: it costs more than writing a small file.
  if (static_cast<std::uint64_t>(status.st_size) != begin.offset &&
      ftruncate(file(), static_cast<off_t>(begin.offset)) != 0)
    throw_problem("cannot write", path_, errno);
}

IncomingFile::~IncomingFile() {
  const std::lock_guard lock(lease_->mutex);
  lease_->file.close();
}

std::unique_lock<std::mutex> IncomingFile::mine() {
  std::unique_lock lock(lease_->mutex);
  if (lease_->lost) throw FileProblem("'" + printable(path_) + "' was taken over by a later copy to the same name");
  return lock;
}

// Repeats until the file that was opened and locked still has that name: another process may have just finished it.
void IncomingFile::open_part() {
  for (int attempt = 0; attempt < 10; ++attempt)
    if (try_open()) return;
  throw FileProblem("'" + printable(path_) + "' is being written by another copy");
}

bool IncomingFile::try_open() {
  Descriptor& file = lease_->file;
  file = Descriptor(openat(folder_->descriptor(), part_.c_str(), O_RDWR | O_CREAT | kFlags, 0600));
  if (!file.open() && errno == EACCES &&
      fchmodat(folder_->descriptor(), part_.c_str(), 0600, 0) == 0)  // left with its final mode
    file = Descriptor(openat(folder_->descriptor(), part_.c_str(), O_RDWR | kFlags));
  const int error = errno;
  struct stat status, named;
  // A link, a pipe, or a file with a second name here is not ours: remove it.
  const bool foreign = file.open()
                           ? fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1
                           : error == ELOOP || error == ENXIO;
  if (foreign) {
    file.close();
    remove_part();
    return false;
  }
  if (!file.open()) throw_problem("cannot write", path_, error);
  if (flock(file.descriptor(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)  // some file systems have no locks
    throw FileProblem("'" + printable(path_) + "' is being written by another copy");
  return fstatat(folder_->descriptor(), part_.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         named.st_ino == status.st_ino && named.st_dev == status.st_dev;
}

void IncomingFile::remove_part() { unlinkat(folder_->descriptor(), part_.c_str(), 0); }

void IncomingFile::write(std::span<const std::byte> bytes) {
  if (bytes.size() > begin_.size - position_) throw ProtocolError("a file of the copy is longer than was said");
  const auto lock = mine();
  digester_.add(bytes);
  ends_in_hole_ = false;
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t put = pwrite(file(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(position_ + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      const int error = errno;
      make_room(error, position_ + done);
      throw_problem("cannot write", path_, error);
    }
    done += static_cast<std::size_t>(put);
  }
  position_ += bytes.size();
  if (position_ - started_ < kStartWriting) return;
  sync_file_range(file(), static_cast<off_t>(started_), static_cast<off_t>(position_ - started_),
                  SYNC_FILE_RANGE_WRITE);
  started_ = position_;
}

// On a full disk, truncates an unfinished file, or deletes a small one, to leave some room for others.
void IncomingFile::make_room(int error, std::uint64_t size) {
  if (error != ENOSPC && error != EDQUOT && error != EFBIG) return;
  if (size < kWorthKeeping || ftruncate(file(), static_cast<off_t>(size / 4 * 3)) != 0) remove_part();
}

void IncomingFile::skip(std::uint64_t zeros) {
  if (zeros > begin_.size - position_) throw ProtocolError("a file of the copy is longer than was said");
  digester_.add_zeros(zeros);
  ends_in_hole_ = true;
  position_ += zeros;
}

void IncomingFile::complete(const Checksum& checksum) {
  if (position_ != begin_.size) throw ProtocolError("a file of the copy is shorter than was said");
  const auto lock = mine();
  if (digester_.checksum() != checksum) {
    remove_part();
    throw FileProblem("'" + printable(path_) + "' does not have the checksum of its source: copy it again");
  }
  if (ends_in_hole_ && ftruncate(file(), static_cast<off_t>(begin_.size)) != 0)
    throw_problem("cannot write", path_, errno);
  set_time_and_mode(file(), begin_.mtime, begin_.mode, path_);
}

void IncomingFile::sync() {
  const auto lock = mine();
  if (fsync(file()) != 0) throw_problem("cannot bring to the disk", path_, errno);
}

void IncomingFile::publish() {
  const auto lock = mine();
  if (renameat(folder_->descriptor(), part_.c_str(), folder_->descriptor(), name_.c_str()) != 0)
    throw_problem("cannot give its name to", path_, errno);
  lease_->file.close();
}

// ---- to the disk, many at a time -----------------------------------------------------------------------------------

namespace {

constexpr std::size_t kMostFiles = 4096;
constexpr std::uint64_t kMaxBytes = 64 << 20;
constexpr std::chrono::seconds kMaxAge(3);
constexpr std::size_t kShares = 8;  // a copy uses at most the process's open files, divided by this
constexpr std::size_t kSingle = 4;  // up to this number, fsync each, which does not flush others' data

// Files of all copies of the process.
std::atomic<std::size_t> held{0};

dev_t device_of(const Folder& folder) {
  struct stat status;
  return fstat(folder->descriptor(), &status) == 0 ? status.st_dev : 0;
}

// `call`: fsync or syncfs. The descriptor of a root that may not be read is of no use to them: then all disks.
bool bring_folder_to_disk(int (*call)(int), const Folder& folder) {
  if (call(folder->descriptor()) == 0) return true;
  if (errno != EBADF) return false;
  ::sync();
  return true;
}

}  // namespace

Commit::Commit(Done done, Fail fail)
    : done_(std::move(done)), fail_(std::move(fail)),
      most_files_(std::clamp<std::uint64_t>(open_files() / kShares, 16, kMostFiles)), thread_([this] { run(); }) {}

Commit::~Commit() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
  held -= items_.size();
}

bool Commit::full() const {
  if (items_.empty()) return false;
  return items_.size() >= most_files_ || bytes_ >= kMaxBytes || held > kShares / 2 * most_files_;
}

// A group that is old enough is synced without waiting for more.
bool Commit::due() const { return full() || (!items_.empty() && (finishing_ || Clock::now() - oldest_ >= kMaxAge)); }

// Waits until the thread has taken a full group: one is collected while another is synced.
void Commit::add(Item item) {
  std::unique_lock lock(mutex_);
  if (items_.empty()) oldest_ = Clock::now();
  bytes_ += item.file->size();
  items_.push_back(std::move(item));
  ++held;
  if (items_.size() == 1 || full()) changed_.notify_all();
  changed_.wait(lock, [this] { return !full(); });
}

void Commit::run() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    if (!due()) {
      changed_.notify_all();  // `held` is of all copies: an add() may go on
      if (items_.empty())
        changed_.wait(lock);
      else
        changed_.wait_until(lock, oldest_ + kMaxAge);
      continue;
    }
    std::vector<Item> items = std::exchange(items_, {});
    bytes_ = 0;
    busy_ = true;
    changed_.notify_all();
    lock.unlock();
    const std::size_t count = items.size();
    commit(std::move(items));
    held -= count;
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

// Whether syncfs() tells of data that did not reach the disk, as Linux does from 5.8 on.
bool syncfs_tells() {
  utsname system{};
  int major = 0, minor = 0;
  return uname(&system) == 0 && std::sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
         (major > 5 || (major == 5 && minor >= 8));
}

// Syncs the files; returns the successful ones and reports the others.
std::vector<Commit::Item> Commit::bring_to_disk(std::vector<Item> items) {
  static const bool each = !syncfs_tells();
  std::map<dev_t, int> synced;  // an error of each disk, or 0
  std::vector<Item> good;
  for (Item& item : items) try {
      if (each || items.size() <= kSingle) {
        item.file->sync();
      } else {
        const auto [place, first] = synced.emplace(device_of(item.file->folder()), 0);
        if (first && !bring_folder_to_disk(syncfs, item.file->folder())) place->second = errno;
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
    finishing_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return items_.empty() && !busy_; });
    finishing_ = false;
  }
  const bool few = folders_.size() <= kSingle;
  if (few) {
    for (const Folder& folder : folders_)
      if (!bring_folder_to_disk(fsync, folder)) throw_problem("cannot bring to the disk", "a folder", errno);
  } else {
    for (const auto& [device, folder] : disks_)
      if (!bring_folder_to_disk(syncfs, folder)) throw_problem("cannot bring to the disk", "a folder", errno);
  }
  folders_.clear();
  disks_.clear();
}

}  // namespace maki::wan::copy
