// The shadow of device memory itself (shadow.hpp says what it is for): a cell for each word of four bytes.
#pragma once

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
// Which bytes of the word have been written since the memory was given out.
unsigned written_bytes(Address word, WorkNumber made);

// Whether `work` is ordered behind the work of an access; the last answer is remembered.
bool after(WorkNumber work, WorkNumber earlier);

}  // namespace gpu_model
