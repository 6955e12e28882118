// Files being received: who writes which, a single file, and groups of them on their way to the disk.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "wan/net/copy/digest.hpp"
#include "wan/net/copy/message.hpp"
#include "wan/net/copy/root.hpp"

namespace maki::wan::copy {

// The right to write an unfinished file. A later copy of the same file takes it over from an earlier one, whose client
// may be gone although its path is still waiting. All work on the file is done with `mutex` held and after a check of
// `lost`.
struct Lease {
  std::mutex mutex;
  bool lost = false;
  Descriptor file;  // of the unfinished file, while it is open
};

// Thread-safe; one object for all copies to one root.
class Leases {
 public:
  // `device` and `inode`: of the file's folder. Ends the previous lease, if any.
  std::shared_ptr<Lease> take(dev_t device, ino_t inode, const std::string& name);

 private:
  std::mutex mutex_;
  std::map<std::tuple<dev_t, ino_t, std::string>, std::weak_ptr<Lease>> leases_;
  std::size_t swept_ = 1024;  // at this number, ended leases are removed
};

// The state of an unfinished file.
struct Partial {
  std::uint64_t size = 0;
  std::int64_t mtime = 0;  // detects writes by others since then
  Digester digester;       // after the file's bytes
};

// Nothing where there is no file to continue, or it cannot be read. Throws what `check` throws.
std::optional<Partial> read_partial(const Folder& folder, const std::string& path, const Check& check);

// Nanoseconds since 1970, and back.
std::int64_t mtime_of(const struct stat& status);
timespec time_of(std::int64_t nanoseconds);

// A file being received. It is written beside its final name, and renamed only when it is complete, checked and on the
// disk. Every call throws FileProblem for errors of the file or the disk. Written data are kept for the next attempt,
// unless they are wrong.
class IncomingFile {
 public:
  // In `folder`; `path`: the whole final name. `partial`: the state on which begin.offset was agreed.
  IncomingFile(Folder folder, std::string path, std::shared_ptr<Lease> lease, const Begin& begin,
               std::optional<Partial> partial);
  ~IncomingFile();
  IncomingFile(const IncomingFile&) = delete;
  IncomingFile& operator=(const IncomingFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void skip(std::uint64_t zeros);
  void complete(const Checksum& checksum);  // all was written: checks it, sets mode and time
  void sync();                              // fsync
  void publish();                           // gives it its final name
  const std::string& path() const { return path_; }
  std::uint64_t size() const { return begin_.size; }
  const Folder& folder() const { return folder_; }

 private:
  void open_part();
  bool try_open();
  std::unique_lock<std::mutex> mine();  // throws where the lease was lost
  void remove_part();
  void make_room(int error, std::uint64_t size);
  int file() const { return lease_->file.descriptor(); }

  Folder folder_;
  std::string path_, name_, part_;
  std::shared_ptr<Lease> lease_;
  Begin begin_;
  std::uint64_t position_ = 0, started_ = 0;  // started_: end of the bytes whose write-back was started
  bool ends_in_hole_ = false;
  Digester digester_;
};

// For a file that differs only in time or mode.
void set_properties(const Folder& folder, const std::string& path, std::int64_t mtime, std::uint32_t mode);

// Received files before their final names: synced in large groups, since each sync costs the same.
class Commit {
 public:
  struct Item {
    std::uint64_t index;
    std::unique_ptr<IncomingFile> file;
  };
  using Done = std::function<void(const Item&)>;
  using Fail = std::function<void(const Item&, const std::string& text)>;
  // Both are called in a thread of this object.
  Commit(Done done, Fail fail);
  ~Commit();  // files not committed keep their unfinished name

  void add(Item item);  // a complete file; it waits for others for a few seconds at most
  void finish();        // syncs all names too; throws FileProblem

 private:
  using Clock = std::chrono::steady_clock;
  bool full() const;
  bool due() const;
  void run();
  void commit(std::vector<Item> items);
  std::vector<Item> bring_to_disk(std::vector<Item> items);

  Done done_;
  Fail fail_;
  std::size_t most_files_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Item> items_;  // being collected, while the thread syncs the group before them
  std::uint64_t bytes_ = 0;  // of items_
  Clock::time_point oldest_;
  bool busy_ = false, finishing_ = false, ended_ = false;
  std::thread thread_;
  std::map<dev_t, Folder> disks_;  // with names not yet synced
  std::vector<Folder> folders_;    // the same, while they are few
};

}  // namespace maki::wan::copy
