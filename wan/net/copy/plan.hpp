// The receiver's decisions: what of the sender's list is wanted, and from where on.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "wan/net/copy/claims.hpp"
#include "wan/net/copy/incoming_file.hpp"
#include "wan/net/copy/message.hpp"
#include "wan/net/copy/report.hpp"
#include "wan/net/copy/root.hpp"

namespace maki::wan::copy {

struct Destination {
  std::string path;        // below the root; with a slash at its end it is a folder
  bool sole_file = false;  // unless it is a folder, `path` is the file's new name
  bool checksum = false;   // size and time do not show that a file is the same
};

// A file that was asked for and has not come yet.
struct Wanted {
  std::string path;  // below the root
  Wish wish = Wish::kSend;
  std::uint64_t size = 0;  // as listed
  std::shared_ptr<Claim> claim;
  std::optional<Partial> partial;  // kContinue
};

class Plan {
 public:
  using Fail = std::function<void(std::uint64_t index, const std::string& text)>;
  // Makes the folder that all goes into. Throws FileProblem where that cannot be.
  Plan(const Root& root, Claims& claims, const Destination& destination, Progress& progress, Fail fail);

  // From one thread. Makes folders, reads what there is of files. Throws ProtocolError.
  Answers answer(const Piece& piece);
  // From another. Nothing for what was not asked for.
  std::optional<Wanted> take(std::uint64_t index);
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
  Answer answer(const Entry& entry, std::uint64_t index);
  void make_folder(const Entry& entry, const std::string& path);
  Answer decide(const Entry& entry, Wanted& wanted);
  bool compare(const std::string& path, std::uint64_t size, Answer& answer) const;

  const Root& root_;
  Claims& claims_;
  Progress& progress_;
  Fail fail_;
  bool checksum_;
  std::string folder_, new_name_;
  std::uint64_t next_ = 0;
  std::vector<MadeFolder> made_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Wanted> wanted_;
  Counts counts_;
};

}  // namespace maki::wan::copy
