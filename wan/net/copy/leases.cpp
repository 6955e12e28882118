#include "wan/net/copy/leases.hpp"

#include <algorithm>

namespace maki::wan::copy {

std::shared_ptr<Lease> Leases::take(dev_t device, ino_t inode, const std::string& name) {
  auto lease = std::make_shared<Lease>();
  std::shared_ptr<Lease> before;
  {
    const std::lock_guard lock(mutex_);
    if (leases_.size() >= swept_) {
      std::erase_if(leases_, [](const auto& entry) { return entry.second.expired(); });
      swept_ = std::max<std::size_t>(1024, 2 * leases_.size());
    }
    auto& place = leases_[{device, inode, name}];
    before = place.lock();
    place = lease;
  }
  if (before) {
    const std::lock_guard lock(before->mutex);
    before->lost = true;
    before->file.close();  // with it goes its lock
  }
  return lease;
}

}  // namespace maki::wan::copy
