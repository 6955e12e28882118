// Accesses of a kernel to memory: where an address leads, who was there before, and what that costs.
#pragma once

#include "tests/gpu_model/interpreter/taint.hpp"
#include "tests/gpu_model/interpreter/warp.hpp"

namespace gpu_model {

enum class Use : std::uint8_t { kRead, kWrite, kAtomic };

// The places in the host's memory of the active lanes' accesses of `bytes` bytes, all of them checked: bounds, alignment,
// races. `undefined`: for each word of the access the lanes that read there what nobody has written. Throws Stopped.
struct Places {
  char* at[kLanes];
  bool same = false;  // all lanes read one place
  Lanes undefined[4] = {};
  bool any_undefined() const { return undefined[0] | undefined[1] | undefined[2] | undefined[3]; }
};
void find_places(Warp& w, const Instruction& i, Use use, unsigned bytes, Places& places);
// For stores of undefined values: the bytes count as unwritten.
void unwrite(Warp& w, const Instruction& i, unsigned lane, const char* place, unsigned bytes);

// Sectors of 32 bytes that accesses touch are counted for the instruction.
void count_sectors(Warp& w, const Instruction& i, Lanes lanes, const Address* a);
std::uint64_t& transactions(Warp& w, const Instruction& i);

// Accesses of some lanes to shared memory (addresses count from its begin) or to global memory. `undefined`: for each word
// of the access the lanes that find there what nobody has written.
void check_global(Warp& w, const Instruction& i, Lanes lanes, const Address* a, Use use, unsigned bytes,
                  Lanes* undefined);
void check_shared(Warp& w, const Instruction& i, Lanes lanes, const Address* a, Use use, unsigned bytes,
                  Lanes* undefined);

Cell* cells_of_bytes(Block& b, Address word, bool shared);  // of single bytes of a word

// membar, fence: what the thread has done comes before what others do after they have seen an atomic access of it.
void fence(Warp& w, const Instruction& i);
void see_others(Block& b);  // at a fence, and at a barrier, which every compiler makes one of
void release_clocks();      // for a new launch

}  // namespace gpu_model
