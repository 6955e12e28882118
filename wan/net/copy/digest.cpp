#include "wan/net/copy/digest.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

namespace maki::wan::copy {

Digester::Digester() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

void Digester::add(std::span<const std::byte> bytes) { XXH3_128bits_update(state_.get(), bytes.data(), bytes.size()); }

void Digester::add_zeros(std::uint64_t count) {
  static const std::vector<std::byte> zeros(256 << 10);
  while (count > 0) {
    const std::size_t part = std::min<std::uint64_t>(count, zeros.size());
    add({zeros.data(), part});
    count -= part;
  }
}

Checksum Digester::checksum() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
  Checksum out;
  static_assert(sizeof canonical == sizeof out);
  std::memcpy(out.data(), &canonical, sizeof out);
  return out;
}

}  // namespace maki::wan::copy
