// The sending side of a copy: lists the files on demand, and sends them.
#pragma once

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
#include "wan/net/copy/root.hpp"

namespace maki::wan::copy {

// A file, or a folder with all its contents.
struct Source {
  std::shared_ptr<const Root> root;
  std::string path;     // below the root; "" for the root itself
  std::string name;     // its name at the receiver; "" for the contents of a folder, without the folder itself
  bool folder = false;  // a folder, or a link to one that stays below the root
};

// `given` as on a command line: a local file or folder. A folder with a trailing slash (or ".") stands for its
// contents. Throws Error if it does not exist.
Source local_source(const std::string& given);
// As local_source(), but for a served root: `given` is relative to the root. Throws FileProblem.
Source served_source(const std::shared_ptr<const Root>& root, const std::string& given);

struct Listed {
  Entry entry;
  std::shared_ptr<const Root> root;
  std::string path;  // below its root
};

// Lists the files of a copy's sources one after another; for each open folder only a few names are in memory.
class Listing {
 public:
  // Reports to `notes` what cannot be listed (symbolic links, special files, unreadable folders).
  Listing(std::vector<Source> sources, Notes& notes);
  ~Listing();
  // The next entries, at most `most`, and `bytes` when encoded; none at the end.
  std::vector<Listed> next(std::size_t most, std::size_t bytes);
  bool sole_file() const { return sole_file_; }

 private:
  struct Level {  // a folder being listed
    Entries stream;
    std::string path, name;          // below its root, and at the receiver
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

// One copy: one thread lists, one receives answers, the caller's reads and sends.
class Sender {
 public:
  Sender(MessageChannel& channel, std::vector<Source> sources, Progress& progress, OnNote on_note, std::size_t batch);
  bool sole_file() const { return listing_.sole_file(); }
  // Reports something that will not be copied, before run().
  void report_problem(const std::string& text) { listing_notes_.add(true, text); }
  // Runs to the end. Throws PathError, ProtocolError; problems of single files are notes.
  Counts run();

 private:
  struct Work {  // a piece: listed, then answered, then sent
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
  std::vector<Note> unsent_notes_;  // not yet sent to the receiver
  Notes listing_notes_;
  Listing listing_;
  RecordWriter writer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> listed_, answered_;
  std::size_t in_hand_ = 0;  // pieces listed but not yet sent
  bool all_listed_ = false, failed_ = false, all_sent_ = false, done_ = false;
  std::uint64_t entries_ = 0, entries_done_ = 0;  // listed; in pieces that were sent
  std::uint64_t failures_ = 0;                    // reported by the receiver
  std::atomic<bool> some_unwanted_{false};
  std::set<std::uint64_t> unwanted_;  // files, not yet sent, that the receiver has since refused
  Counts counts_;
};

}  // namespace maki::wan::copy
