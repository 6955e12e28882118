// The receiving side of a copy: what of a list is wanted, and what is done with what comes.
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
#include "wan/net/copy/report.hpp"
#include "wan/net/copy/root.hpp"

namespace maki::wan::copy {

struct Destination {
  std::string path;        // below the root; with a slash at its end it is a folder
  bool sole_file = false;  // one file and nothing else: unless `path` is a folder, it is the file's new name
  bool checksum = false;   // size and time do not show that a file is the same
  bool perms = false;      // take execute bits, and writing by others, as the sender has them
  // What was asked for: these, and what is below them. Empty: whatever comes.
  std::set<std::string, std::less<>> asked = {};
};

// A file that was asked for and has not come yet.
struct Wanted {
  std::string path;  // below the root
  FileRequest request = FileRequest::kSend;
  std::uint64_t size = 0;  // as listed
  std::shared_ptr<Lease> lease;
  std::optional<Partial> partial;     // kContinue
  std::optional<std::uint32_t> mode;  // of the file that is there
};

// The receiver's decisions: what of the sender's list is wanted, and from where on.
class Plan {
 public:
  using Fail = std::function<void(std::uint64_t index, const std::string& text)>;
  // Makes the folder that all goes into. Throws FileProblem where that cannot be.
  Plan(const Root& root, Leases& leases, const Destination& destination, Progress& progress, Fail fail, Check check);

  // From one thread. Makes folders, reads what there is of files. Throws ProtocolError for what was not asked for too.
  Answers answer(const Piece& piece);
  void wait_for_room();  // while very much is wanted and has not come. Throws what `check` throws
  void wake();           // those who wait look at `check` again
  // From another. Nothing for what is not wanted.
  std::optional<Wanted> take(std::uint64_t index);
  bool all_taken() const;
  // What is taken of a mode. Without Destination::perms a file that is there keeps its own,
  // and a folder who else may write to it.
  std::uint32_t mode_of(Kind kind, std::uint32_t given, std::optional<std::uint32_t> there) const;
  // When all has come: folders get their modes and times.
  void finish_folders();
  Counts counts() const;  // of folders, and what was there

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

// The receiving side of one copy: a thread answers what is listed, the caller's writes what comes.
class Receiver {
 public:
  // Throws FileProblem where the destination cannot be had.
  Receiver(MessageChannel& channel, const Root& root, Leases& leases, const Destination& destination,
           Progress& progress, OnNote on_note);
  // To the end. Throws PathError, ProtocolError; what is wrong with single files is in the report.
  CopyReport run();

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
  std::vector<Failure> failures_;  // not yet told
  std::mutex telling_;
  bool begun_ = false;  // a file is coming, whether or not it can be taken
  std::uint64_t index_ = 0;
  std::uint64_t listed_ = 0, size_ = 0, at_ = 0;  // bytes of it: as listed, as begun, so far
  std::unique_ptr<IncomingFile> file_;
  Counts counts_;
  std::atomic<std::uint64_t> committed_{0};  // files
  Commit commit_;                            // last: its thread uses the others
};

}  // namespace maki::wan::copy
