// Who writes which unfinished file. A later copy of the same file takes it over from an earlier one, which may be that
// of a client that is gone, though its path still hopes for it.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "wan/net/copy/root.hpp"

namespace maki::wan::copy {

// All work on the file is done with `mutex` held and after a look at `lost`.
struct Lease {
  std::mutex mutex;
  bool lost = false;
  Descriptor file;  // of the unfinished file, while it is open
};

// Any thread; one for all who write below a root.
class Leases {
 public:
  // `device` and `inode` of the folder that the file is in. Ends the lease that there was.
  std::shared_ptr<Lease> take(dev_t device, ino_t inode, const std::string& name);

 private:
  std::mutex mutex_;
  std::map<std::tuple<dev_t, ino_t, std::string>, std::weak_ptr<Lease>> leases_;
  std::size_t swept_ = 1024;  // when there are so many, those that ended are removed
};

}  // namespace maki::wan::copy
