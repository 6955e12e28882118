// Kernels of PTX, and their launches.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/gpu_model/memory/work.hpp"
#include "tests/gpu_model/ptx/parse.hpp"

namespace gpu_model {

struct Kernel;  // decoded PTX

// A kernel's name for messages: without its parameters, and shortened.
std::string demangled(const std::string& symbol);

struct KernelShape {
  std::vector<std::size_t> parameter_bytes;    // of each parameter, and ...
  std::vector<std::size_t> parameter_offsets;  // ... where it lies in the parameter block
  std::size_t block_bytes = 0;                 // of the whole parameter block
  std::size_t static_shared = 0;               // bytes
  unsigned max_threads = 0;                    // __launch_bounds__, 0: none
};

struct Launch {
  const Kernel* kernel = nullptr;
  std::array<unsigned, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::size_t dynamic_shared = 0;
  std::vector<std::byte> parameters;
  WorkNumber work = 0;
};

// Runs all blocks to their end, on the calling thread. Faults are reported; throws Stopped where the kernel could not
// go on.
void run(const Launch& launch);

// A decoded kernel: an array of instructions, each with the function that carries it out for a warp.
//
// Registers are rows: one value for each of the 32 lanes, 4 bytes apart (16- and 32-bit types) or 8 (64-bit types); a
// predicate is one word with a bit for each lane. Rows of a warp lie in one file of registers, rows of constants in
// another, which all warps share. A Row names a row by its place in bytes; the top bit tells which of the files.

inline constexpr unsigned kLanes = 32;

using Row = std::uint32_t;
inline constexpr Row kConstant = 1u << 31;
inline constexpr Row kNoRow = ~0u;

struct Warp;
struct Instruction;
using Handler = void (*)(Warp&, const Instruction&);

// What an operation does with input that nobody has written (operations.hpp).
enum class Taint : std::uint8_t { kPassed, kHalves, kUsed, kOwn };  // kHalves: of each half of a 64-bit row for itself

enum class Space : std::uint8_t { kGlobal, kShared, kLocal, kParameter, kGeneric };

struct Instruction {
  Handler run = nullptr;
  std::array<Row, 4> to{kNoRow, kNoRow, kNoRow, kNoRow};  // of vectors: each element
  std::array<Row, 4> from{kNoRow, kNoRow, kNoRow, kNoRow};
  Row address = kNoRow;     // of loads, stores, atomics
  std::int64_t offset = 0;  // added to it
  Row guard = kNoRow;
  std::uint32_t target = 0;  // of branches
  bool negated = false;      // the guard
  bool jumps = false;        // the handler sees to the guard and to the place in the program
  bool strong = false;       // relaxed, volatile, atomic: not a race with others of the kind
  Taint taint = Taint::kPassed;
  std::uint8_t elements = 1;                                     // of a vector
  std::uint8_t bytes = 0;                                        // of an element in memory
  std::uint8_t to_bits = 32, from_bits = 32, address_bits = 64;  // registers' widths
  std::uint8_t wide = 0;                                         // a bit for each operand with 64 bits
  Space space = Space::kGlobal;
  bool barrier = false;     // or a fence
  std::int32_t source = 0;  // index into KernelText::lines
  std::uint16_t extra = 0;  // what the handler needs besides
};

struct SharedVariable {
  std::uint32_t begin = 0, end = 0;
};

struct Kernel {
  std::string name;  // demangled
  KernelShape shape;
  std::vector<Instruction> code;
  const ptx::KernelText* text = nullptr;
  const std::map<int, std::string>* files = nullptr;  // of its module
  std::vector<char> constants;
  std::uint32_t predicate_bytes = 0, register_bytes = 0;  // predicates lie first
  struct SpecialRow {
    Row row;
    std::string name;  // %tid.x ...
  };
  std::vector<SpecialRow> specials;
  std::vector<SharedVariable> shared;  // with gaps between them that nobody may use, ...
  std::uint32_t shared_end = 0;        // ... up to here; dynamic shared memory follows
  std::uint32_t local_bytes = 0;
};

// The module stays where it is. Throws std::runtime_error with the operation or name that is not known.
Kernel decode(const ptx::ModuleText& module, const std::string& name);

}  // namespace gpu_model
