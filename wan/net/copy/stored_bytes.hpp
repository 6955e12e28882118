// The bytes of a file that is there: where they are, and their checksum.
#pragma once

#include <cstdint>
#include <functional>

#include "wan/net/copy/digest.hpp"

namespace maki::wan::copy {

// Throws where the copy is to end: called between the steps of whatever takes long.
using Check = std::function<void()>;

// Where the next data begins and ends, from `at` on, before `size`: both `size` where only a hole is left.
struct Extent {
  std::uint64_t begin = 0, end = 0;
};
Extent next_data(int file, std::uint64_t at, std::uint64_t size);

// Adds the first `size` bytes of the file to a fresh digester, passing over holes. How many there were: fewer where the
// file is shorter, or cannot be read (errno says why; it is 0 at the end). Throws what `check` throws.
std::uint64_t digest_file(int file, std::uint64_t size, Digester& digester, const Check& check);

}  // namespace maki::wan::copy
