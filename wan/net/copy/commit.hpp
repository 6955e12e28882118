// Received files on their way to their final names: brought to the disk many at a time, since each visit costs the
// same.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
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
  Commit(Done done, Fail fail) : done_(std::move(done)), fail_(std::move(fail)) {}

  void add(Item item);  // a complete file
  void look();          // now and then: nothing waits for long
  void finish();        // all names are on the disk too. Throws FileProblem.

 private:
  void flush();
  void bring_to_disk();

  Done done_;
  Fail fail_;
  std::vector<Item> items_;
  std::uint64_t bytes_ = 0;
  std::chrono::steady_clock::time_point oldest_;
  std::map<dev_t, Folder> disks_;  // with names that are not on the disk yet
  std::vector<Folder> folders_;    // the same, while they are few
};

}  // namespace maki::wan::copy
