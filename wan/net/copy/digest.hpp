// The checksum of a file's bytes: XXH3 with 128 bits, fast enough to cost nothing beside a disk. It finds damage; that
// nobody forges a file is what the path's encryption is for.
#pragma once

#include <xxhash.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace maki::wan::copy {

using Checksum = std::array<std::byte, 16>;

// Takes bytes in order, in pieces of any size.
class Digester {
 public:
  Digester();
  void add(std::span<const std::byte> bytes);
  void add_zeros(std::uint64_t count);
  Checksum checksum() const;  // of all so far

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

}  // namespace maki::wan::copy
