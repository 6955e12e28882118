// A file that is being received: written beside its final name, and there only when it is whole, checked and on the
// disk.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "wan/net/copy/digest.hpp"
#include "wan/net/copy/leases.hpp"
#include "wan/net/copy/records.hpp"
#include "wan/net/copy/root.hpp"
#include "wan/net/copy/stored_bytes.hpp"

namespace maki::wan::copy {

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
  int file() const { return lease_->file.number(); }

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

}  // namespace maki::wan::copy
