// The checksum of a file's bytes: XXH3 with 128 bits, fast enough to cost nothing beside a disk. It finds damage; that
// nobody forges a file is what the path's encryption is for.
//
// Of blocks that hold only zeros it takes in where they are, not each byte: a peer can claim a hole of any length.
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
  void add_zeros(std::uint64_t count);  // the same as adding them, in a time that does not depend on their number
  Checksum checksum() const;            // of all so far

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  void begin_block();
  void feed(std::span<const std::byte> bytes);
  std::uint64_t block_start() const;

  std::unique_ptr<XXH3_state_t, Free> state_;
  std::uint64_t position_ = 0;
  std::uint64_t fed_ = 0;  // where the last bytes that the state has taken in end
};

}  // namespace maki::wan::copy
