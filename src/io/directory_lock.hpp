// One run writes to an output directory at a time.
#pragma once

#include <string>

namespace maki {

// Held while this lives, and gone with the process however that ends: nothing stays on the disk.
class DirectoryLock {
 public:
  // Throws Error where another run holds it. File systems that have no locks give none, and nobody is refused there.
  explicit DirectoryLock(const std::string& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace maki
