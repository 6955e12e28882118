// The shadow of device memory itself (shadow.hpp says what it is for): a cell for each word of four bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tests/gpu_model/memory/address_space.hpp"
#include "tests/gpu_model/memory/work.hpp"

namespace gpu_model {

// Counts the synchronisations of a launch; an access remembers when it was.
using Moment = std::uint32_t;

// What is remembered of the accesses to a word.
struct Access {
  std::uint32_t work = 0, block = 0;
  Moment moment = 0;
  std::uint16_t thread = 0;
  std::uint8_t bytes = 0;  // of writes: which of the word's bytes are written
  std::uint8_t flags = 0;
  enum : std::uint8_t {
    kStrong = 1,
    kByLanes = 2,
    kByWarps = 4,
    kByBlocks = 8,
    kBytes = 16
  };  // by several; each byte has its own
};
struct Cell {
  Access write, read;
};

Cell& cell_of(Address a);  // a: on_device()
// Where bytes of a word are used one by one (Access::kBytes), each of them has a cell as well.
Cell* byte_cells_of(Address word);
// Which bytes of the word are among the `bytes` from `a` on.
inline unsigned mask_in(Address word, Address a, std::size_t bytes) {
  const Address begin = std::max(a, word), end = std::min<Address>(a + bytes, word + 4);
  return ((1u << (end - begin)) - 1) << (begin - word);
}
// Which bytes of the word have been written since the memory was given out.
unsigned written_bytes(Address word, WorkNumber made);

// Shadow of device memory: for each word of four bytes who wrote it last, which of its bytes are written, who read it
// last. From it the model tells reads of what nobody has written, and two accesses that nothing orders: between pieces
// of work (streams), between the blocks of a launch, and between the threads of a block.

// Whole ranges, as copies, fills and library calls use them. Report faults of kinds "out of bounds", "a race between
// streams", "wrong device" (except copies, which may go from GPU to GPU) and return false where the range may not be
// used at all. Reads of unwritten bytes are not reported here (a copy takes padding along): what is read unwritten stays
// unwritten at the destination of a copy.
bool note_read(WorkNumber work, Address from, std::size_t bytes, const char* what);
bool note_write(WorkNumber work, Address to, std::size_t bytes, const char* what);
bool note_copy(WorkNumber work, Address to, Address from,
               std::size_t bytes);  // device to device, or from or to the host

}  // namespace gpu_model
