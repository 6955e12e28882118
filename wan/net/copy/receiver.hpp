// The receiving side of a copy: decides what is wanted of a list, and writes what arrives.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "wan/net/copy/incoming_file.hpp"
#include "wan/net/copy/message.hpp"
#include "wan/net/copy/message_channel.hpp"
#include "wan/net/copy/root.hpp"

namespace maki::wan::copy {

struct Destination {
  std::string path;        // below the root; a trailing slash marks a folder
  bool sole_file = false;  // a single file: unless `path` is a folder, it is the file's new name
  bool checksum = false;   // equal size and time do not suffice: compare contents
  bool perms = false;      // take execute bits, and write permission for others, from the sender
  // The paths asked for: these, and what is below them. Empty: everything.
  std::set<std::string, std::less<>> asked = {};
};

// A wanted file that has not arrived yet.
struct Wanted {
  std::string path;  // below the root
  FileRequest request = FileRequest::kSend;
  std::uint64_t size = 0;  // as listed
  std::shared_ptr<Lease> lease;
  std::optional<Partial> partial;     // kContinue
  std::optional<std::uint32_t> mode;  // of the existing file
};

// The receiver's decisions: what is wanted of the sender's list, and from which offset.
class Plan {
 public:
  using Fail = std::function<void(std::uint64_t index, const std::string& text)>;
  // Makes the folder that receives everything. Throws FileProblem where that fails.
  Plan(const Root& root, Leases& leases, const Destination& destination, Progress& progress, Fail fail, Check check);

  // Called by one thread. Makes folders, reads the state of files. Throws ProtocolError also for what was not asked
  // for.
  Answers answer(const Piece& piece);
  void wait_for_room();  // while too much is wanted but has not arrived; throws what `check` throws
  void wake();           // waiting threads call `check` again
  // Called by another thread. Nothing for unwanted entries.
  std::optional<Wanted> take(std::uint64_t index);
  bool all_taken() const;
  // The mode to set. Without Destination::perms an existing file keeps its own, and an existing folder its write
  // permissions for others.
  std::uint32_t mode_of(Kind kind, std::uint32_t given, std::optional<std::uint32_t> there) const;
  // At the end: sets the folders' modes and times.
  void finish_folders();
  Counts counts() const;  // of folders, and of existing files

 private:
  struct MadeFolder {
    std::string path;
    std::int64_t mtime;
    std::uint32_t mode;
  };
  std::string place_of(const Entry& entry) const;
  void check_asked(const Entry& entry) const;
  Answer answer(const Entry& entry, std::uint64_t index);
  void make_folder(const Entry& entry, const std::string& path);
  Answer decide(const Entry& entry, Wanted& wanted);
  bool compare(const std::string& path, std::uint64_t size, Answer& answer) const;

  const Root& root_;
  Leases& leases_;
  Progress& progress_;
  Fail fail_;
  Check check_;
  Destination destination_;
  std::string folder_, new_name_;
  std::uint64_t next_ = 0;
  std::vector<MadeFolder> made_;
  std::size_t made_names_ = 0;  // bytes
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::uint64_t, Wanted> wanted_;
  std::size_t wanted_names_ = 0;  // bytes
  Counts counts_;
};

// The receiving side of one copy: one thread answers the list, the caller's writes the contents.
class Receiver {
 public:
  // Throws FileProblem where the destination is unusable.
  Receiver(MessageChannel& channel, const Root& root, Leases& leases, const Destination& destination,
           Progress& progress, OnNote on_note);
  // Runs to the end. Throws PathError, ProtocolError; problems of single files are notes.
  Counts run();

 private:
  void answer_all();
  void write_all();
  bool take_message(std::span<const std::byte> message);  // false: it was the last
  void take(const Begin& begin);
  void take(const Content& content);
  void take(const Hole& hole);
  void take(const End& end);
  void take(const Abandon& abandon);
  void take(const Note& note);
  void advance(std::uint64_t bytes, bool moved);
  void open(Begin begin, Wanted wanted);
  template <class Work>
  void try_current(Work work);
  void fail(std::uint64_t index, const std::string& text);
  void send_failures();
  void end();

  MessageChannel& channel_;
  const Root& root_;
  Progress& progress_;
  Notes notes_;
  Plan plan_;
  std::mutex mutex_;
  std::vector<Failure> failures_;  // not yet reported to the sender
  std::mutex telling_;
  bool begun_ = false;  // a file is arriving, accepted or not
  std::uint64_t index_ = 0;
  std::uint64_t listed_ = 0, size_ = 0, at_ = 0;  // bytes of the file: as listed, as begun, so far
  std::unique_ptr<IncomingFile> file_;
  Counts counts_;
  std::atomic<std::uint64_t> committed_{0};  // files
  Commit commit_;                            // last: its thread uses the others
};

}  // namespace maki::wan::copy
