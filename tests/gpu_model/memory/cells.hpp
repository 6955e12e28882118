// The shadow of device memory itself (shadow.hpp says what it is for): a cell for each word of four bytes.
#pragma once

#include "tests/gpu_model/interpreter/warp.hpp"

namespace gpu_model {

Cell& cell_of(Address a);  // a: on_device()
// Where bytes of a word are used one by one (Access::kBytes), each of them has a cell as well.
Cell* byte_cells_of(Address word);
// Which bytes of the word have been written since the memory was given out.
unsigned written_bytes(Address word, WorkNumber made);

// Whether `work` is ordered behind the work of an access; the last answer is remembered.
bool after(WorkNumber work, WorkNumber earlier);

}  // namespace gpu_model
