// The sending side of a copy: what there is to send, found as it is asked for, and how it is sent.
#pragma once

#include <dirent.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "wan/net/copy/message.hpp"
#include "wan/net/copy/message_channel.hpp"
#include "wan/net/copy/report.hpp"
#include "wan/net/copy/root.hpp"

namespace maki::wan::copy {

// A file, or a folder with all that is in it.
struct Source {
  std::shared_ptr<const Root> root;
  std::string path;     // below the root; "" for the root itself
  std::string name;     // what the receiver calls it; "" for the contents of a folder, without the folder itself
  bool folder = false;  // for certain, or by a link that stays below the root
};

// `given` as on a command line: a file or folder of this machine. A folder with a slash at its end (or ".") stands for
// its contents. Throws Error where it is not there.
Source local_source(const std::string& given);
// The same of a served root, where `given` counts from the root. Throws FileProblem.
Source served_source(const std::shared_ptr<const Root>& root, const std::string& given);

struct Listed {
  Entry entry;
  std::shared_ptr<const Root> root;
  std::string path;  // below its root
};

// Names the files of a copy's sources one after another; of each open folder a few names are in memory.
class Listing {
 public:
  // What cannot be listed (symbolic links, special files, folders that cannot be read) is told to `notes`.
  Listing(std::vector<Source> sources, Notes& notes);
  ~Listing();
  // The next entries, at most so many, and bytes when encoded; none at the end.
  std::vector<Listed> next(std::size_t most, std::size_t bytes);
  bool sole_file() const { return sole_file_; }

 private:
  struct Close {
    void operator()(DIR* stream) const { closedir(stream); }
  };
  struct Level {  // a folder that is being listed
    std::unique_ptr<DIR, Close> stream;
    std::string path, name;          // below its root, and as the receiver calls it
    std::vector<std::string> names;  // the next ones, last first
  };
  static void read_names(Level& level);
  std::optional<Listed> begin(const Source& source);
  std::optional<Listed> step();
  std::optional<Listed> take(const std::shared_ptr<const Root>& root, const std::string& path, const std::string& name,
                             const struct stat& status);
  void enter(const std::string& path, const std::string& name);

  std::vector<Source> sources_;
  Notes& notes_;
  bool sole_file_ = false;
  std::size_t source_ = 0;  // the next one
  std::shared_ptr<const Root> root_;
  std::vector<Level> levels_;
  std::optional<Listed> held_;  // did not fit
};

// One copy: one thread lists, one hears what is wanted, the caller's reads and sends.
class Sender {
 public:
  Sender(MessageChannel& channel, std::vector<Source> sources, Progress& progress, OnNote on_note,
         std::size_t batch = 8 << 20);
  bool sole_file() const { return listing_.sole_file(); }
  // Of something that will not be copied, before run().
  void report_problem(const std::string& text) { listing_notes_.add(true, text); }
  // To the end. Throws PathError, ProtocolError; what is wrong with single files is in the report.
  CopyReport run();

 private:
  struct Work {  // a piece: first listed, then answered, then sent
    std::uint64_t first = 0;
    std::vector<Listed> files;
    std::vector<Answer> answers;
  };
  void list_all();
  void receive_all();
  void take(Answers answers);
  void take(const Results& results);
  void check_failure(const Failure& failure);
  void send_all();
  bool next(Work& work);
  void send(Work& work);
  void send_file(std::uint64_t index, const Listed& listed, const Answer& answer);
  void send_notes();

  MessageChannel& channel_;
  Progress& progress_;
  Notes notes_;
  std::mutex unsent_mutex_;
  std::vector<Note> unsent_notes_;  // what the receiver does not know yet
  Notes listing_notes_;
  Listing listing_;
  RecordWriter writer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> listed_, answered_;
  std::size_t in_hand_ = 0;  // pieces listed and not yet sent
  bool all_listed_ = false, failed_ = false, all_sent_ = false, done_ = false;
  std::uint64_t entries_ = 0, entries_done_ = 0;  // listed; of pieces that were sent
  std::uint64_t failures_ = 0;                    // that the receiver told of
  std::atomic<bool> some_unwanted_{false};
  std::set<std::uint64_t> unwanted_;  // files, not yet sent, that the receiver cannot take after all
  Counts counts_;
};

}  // namespace maki::wan::copy
