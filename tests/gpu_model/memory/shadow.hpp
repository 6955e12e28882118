// Shadow of device memory: for each word of four bytes who wrote it last, which of its bytes are written, who read it last.
// From it the model tells reads of what nobody has written, and two accesses that nothing orders: between pieces of work
// (streams), between the blocks of a launch, and between the threads of a block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/gpu_model/memory/address_space.hpp"
#include "tests/gpu_model/memory/work.hpp"

namespace gpu_model {

// Whole ranges, as copies, fills and library calls use them. Report faults of kinds "out of bounds", "race between streams"
// and return false where the range may not be used at all. Reads of unwritten bytes are not reported here (a copy takes
// padding along): what is read unwritten stays unwritten at the destination of a copy.
bool note_read(WorkNumber work, Address from, std::size_t bytes, const char* what);
bool note_write(WorkNumber work, Address to, std::size_t bytes, const char* what);
bool note_copy(WorkNumber work, Address to, Address from,
               std::size_t bytes);  // device to device, or from or to the host
// The first values of a module's variables: before all work, whoever had that memory before.
void note_first_values(Address a, std::size_t bytes);

}  // namespace gpu_model
