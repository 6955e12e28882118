#include "wan/net/copy/claims.hpp"

#include <algorithm>

namespace maki::wan::copy {

std::shared_ptr<Claim> Claims::take(dev_t device, ino_t inode, const std::string& name) {
  auto claim = std::make_shared<Claim>();
  std::shared_ptr<Claim> before;
  {
    const std::lock_guard lock(mutex_);
    if (claims_.size() >= swept_) {
      std::erase_if(claims_, [](const auto& entry) { return entry.second.expired(); });
      swept_ = std::max<std::size_t>(1024, 2 * claims_.size());
    }
    auto& place = claims_[{device, inode, name}];
    before = place.lock();
    place = claim;
  }
  if (before) {
    const std::lock_guard lock(before->mutex);
    before->lost = true;
    before->file.close();  // with it goes its lock
  }
  return claim;
}

}  // namespace maki::wan::copy
