// Files that are being received: who writes which, one of them, and many on their way to the disk.
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

// Who writes which unfinished file. A later copy of the same file takes it over from an earlier one, which may be that
// of a client that is gone, though its path still hopes for it.
// All work on the file is done with `mutex` held and after a look at `lost`.
struct Lease {
  std::mutex mutex;
  bool lost = false;
  Descriptor file;  // of the unfinished file, while it is open
};

// Any thread; one for all who write below a root.
class Leases {
 public:
  // `device` and `inode` of the folder that the file is in. Ends the lease that there was.
  std::shared_ptr<Lease> take(dev_t device, ino_t inode, const std::string& name);

 private:
  std::mutex mutex_;
  std::map<std::tuple<dev_t, ino_t, std::string>, std::weak_ptr<Lease>> leases_;
  std::size_t swept_ = 1024;  // when there are so many, those that ended are removed
};

// What there is of an unfinished file.
struct Partial {
  std::uint64_t size = 0;
  std::int64_t mtime = 0;  // to notice that someone else has written since
  Digester digester;       // after its bytes
};

// Nothing where there is none that could be continued, or it cannot be read. Throws what `check` throws.
std::optional<Partial> read_partial(const Folder& folder, const std::string& path, const Check& check);

// Nanoseconds since 1970, and back.
std::int64_t mtime_of(const struct stat& status);
timespec time_of(std::int64_t nanoseconds);

// A file that is being received: written beside its final name, and there only when it is whole, checked and on the
// disk.
// Every call throws FileProblem for what is wrong with the file or the disk. What was written stays for the next time,
// except where it is wrong.
class IncomingFile {
 public:
  // Of `folder`; `path` is the whole final name. `partial` is what begin.offset was agreed upon with.
  IncomingFile(Folder folder, std::string path, std::shared_ptr<Lease> lease, const Begin& begin,
               std::optional<Partial> partial);
  ~IncomingFile();
  IncomingFile(const IncomingFile&) = delete;
  IncomingFile& operator=(const IncomingFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void skip(std::uint64_t zeros);
  void complete(const Checksum& checksum);  // all is there: checks it, and sets mode and time
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
  std::uint64_t position_ = 0, started_ = 0;  // started_: bytes that the disk has been told to begin with
  bool ends_in_hole_ = false;
  Digester digester_;
};

// For a file that is right but for its time or mode.
void set_properties(const Folder& folder, const std::string& path, std::int64_t mtime, std::uint32_t mode);

// Received files on their way to their final names: brought to the disk many at a time, since each visit costs the
// same.
class Commit {
 public:
  struct Item {
    std::uint64_t index;
    std::unique_ptr<IncomingFile> file;
  };
  using Done = std::function<void(const Item&)>;
  using Fail = std::function<void(const Item&, const std::string& text)>;
  // Both are called in a thread of this.
  Commit(Done done, Fail fail);
  ~Commit();  // what was not committed stays under its unfinished name

  void add(Item item);  // a complete file; it waits for others for a few seconds at most
  void finish();        // all names are on the disk too. Throws FileProblem.

 private:
  using Clock = std::chrono::steady_clock;
  void flush(std::unique_lock<std::mutex>& lock);
  void hand_over();
  void run();
  void commit(std::vector<Item> items);
  std::vector<Item> bring_to_disk(std::vector<Item> items);

  Done done_;
  Fail fail_;
  std::size_t most_files_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Item> items_;  // being collected
  std::uint64_t bytes_ = 0;
  Clock::time_point oldest_;
  std::vector<Item> handed_;  // to the thread, which is busy with them until `busy_` is false
  bool busy_ = false, ended_ = false;
  std::thread thread_;
  std::map<dev_t, Folder> disks_;  // with names that are not on the disk yet
  std::vector<Folder> folders_;    // the same, while they are few
};

}  // namespace maki::wan::copy
