// The checksum of a file's bytes: XXH3 with 128 bits, fast enough to cost nothing beside a disk. It detects damage;
// against forgery there is the path's encryption.
//
// All-zero blocks are not hashed, only the offset of the data behind them: a peer can claim a hole of any length.
#pragma once

#include <xxhash.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace maki::wan::copy {

using Checksum = std::array<std::byte, 16>;

// Accepts bytes in order, in pieces of any size.
class Digester {
 public:
  Digester();
  void add(std::span<const std::byte> bytes);
  void add_zeros(std::uint64_t count);  // as adding them, in a time independent of their number
  Checksum checksum() const;            // of all bytes so far

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  void begin_block();
  void feed(std::span<const std::byte> bytes);
  std::uint64_t block_start() const;

  std::unique_ptr<XXH3_state_t, Free> state_;
  std::uint64_t position_ = 0;
  std::uint64_t fed_ = 0;  // end of the last bytes hashed
};

// Throws where the copy is to end; called between the steps of long operations.
using Check = std::function<void()>;

// The first range of data at or after `at` and before `size`: begin and end, both `size` where only a hole is left.
struct Extent {
  std::uint64_t begin = 0, end = 0;
};
Extent next_data(int file, std::uint64_t at, std::uint64_t size);

// Adds the first `size` bytes of the file to a fresh digester, skipping holes. Returns the number of bytes: fewer where
// the file is shorter or cannot be read (errno says why; 0 at the end of file). Throws what `check` throws.
std::uint64_t digest_file(int file, std::uint64_t size, Digester& digester, const Check& check);

}  // namespace maki::wan::copy
