// Received files on their way to their final names: brought to the disk many at a time, since each visit costs the
// same.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "wan/net/copy/incoming_file.hpp"

namespace maki::wan::copy {

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
