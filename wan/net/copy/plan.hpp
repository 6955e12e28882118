// The receiver's decisions: what of the sender's list is wanted, and from where on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "wan/net/copy/incoming_file.hpp"
#include "wan/net/copy/leases.hpp"
#include "wan/net/copy/message.hpp"
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
  Wish wish = Wish::kSend;
  std::uint64_t size = 0;  // as listed
  std::shared_ptr<Lease> lease;
  std::optional<Partial> partial;     // kContinue
  std::optional<std::uint32_t> mode;  // of the file that is there
};

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

}  // namespace maki::wan::copy
