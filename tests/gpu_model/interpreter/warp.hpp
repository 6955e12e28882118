// A block that runs: its warps, its shared memory, and how its threads are ordered among each other.
//
// Each lane has a place in the program of its own. Lanes at one place form a group, which is carried out together;
// groups meet again where they come to the same place while they wait for their turn, and where an operation of the
// warp (or of the block) asks for it. What is not ordered by the program is drawn from the seed.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/gpu_model/interpreter/program.hpp"
#include "tests/gpu_model/memory/address_space.hpp"
#include "tests/gpu_model/memory/shadow.hpp"
#include "tests/gpu_model/report.hpp"

namespace gpu_model {

using Lanes = std::uint32_t;  // a bit for each lane
struct Block;

struct Group {
  enum State : std::uint8_t { kReady, kAtWarp, kAtBlock };
  std::uint32_t pc = 0;
  Lanes lanes = 0;
  State state = kReady;
  Lanes mask = 0;  // of the operation of the warp that it waits for
};

// A cp.async that has not landed.
struct PendingCopy {
  std::uint32_t to = 0;
  Address from = 0;
  std::uint8_t bytes = 0, read = 0;  // the rest is filled with zeros
  std::uint32_t group = 0;
  std::uint32_t instruction = 0;
};

struct Warp {
  // Now executing.
  char* registers = nullptr;
  const char* constants = nullptr;
  Lanes active = 0;  // none: the group cannot go on now
  std::uint32_t pc = 0;
  std::uint32_t stop = ~0u;                    // where the next other ready group stands
  bool tainted = false;                        // a register may hold what nobody has written, ...
  std::uint32_t taint_from = 0;                // ... read by this instruction at last
  alignas(64) std::int32_t lane[kLanes] = {};  // -1: active

  Block* block = nullptr;
  std::uint32_t number = 0;   // in its block
  Lanes present = 0;          // lanes that exist
  Lanes alive = 0;            // and have not ended
  std::vector<Group> groups;  // those that are not executing
  bool at_barrier = false;
  Lanes barrier_value = 0;  // the predicates of bar.red
  std::uint32_t barrier_pc = 0;

  std::vector<char> file;
  std::vector<Lanes> undefined_predicates, undefined_rows;  // a bit for each lane; a 64-bit row has two
  std::vector<char> local;
  std::vector<std::uint8_t> local_written;
  std::vector<PendingCopy> copies[kLanes];
  std::uint32_t copy_groups[kLanes] = {};  // committed so far

  Moment all_met = 0;       // when all lanes synchronised last
  std::vector<Moment> met;  // [a * 32 + b]; empty: only all together
  Moment last_met(unsigned a, unsigned b) const {
    return met.empty() ? all_met : std::max(all_met, met[a * kLanes + b]);
  }
};

struct Block {
  const Kernel* kernel = nullptr;
  const Launch* launch = nullptr;
  std::uint32_t index = 0;  // in the grid
  std::uint32_t place[3] = {};
  std::uint32_t threads = 0;
  std::vector<Warp> warps;
  std::vector<char> shared;
  std::vector<Cell> shared_cells;       // of each word, and ...
  std::vector<Cell> shared_byte_cells;  // ... of each byte where bytes are used one by one
  std::vector<std::uint8_t> landing;    // bytes that a cp.async is on its way to, ...
  std::uint32_t copies_under_way = 0;   // ... of so many copies
  std::uint32_t shared_bytes = 0;
  Moment began = 0, barrier = 0;                     // the last barrier
  std::unordered_map<std::uint32_t, Moment> seen;    // blocks whose writes up to then come before this one's accesses
  std::unordered_map<std::uint32_t, Moment> to_see;  // at the next fence
  bool fenced = false;
};

extern Moment now;  // of the launch that runs

// Windows of generic addresses.
inline constexpr Address kSharedWindow = Address{1} << 46, kLocalWindow = Address{3} << 45,
                         kParameterWindow = Address{5} << 44;
inline constexpr Address kWindowBytes = Address{1} << 28,
                         kLocalBytes = Address{1} << 16;  // of a thread: each has a place of its own

template <class T>
T* row(Warp& w, Row r) {
  return reinterpret_cast<T*>(r & kConstant ? const_cast<char*>(w.constants) + (r & ~kConstant) : w.registers + r);
}

void set_active(Warp& w, Lanes lanes);
Lanes mask_of(const std::int32_t* flags);      // the sign bits
void expand(Lanes mask, std::int32_t* flags);  // -1 or 0
inline unsigned first_lane(Lanes m) { return static_cast<unsigned>(__builtin_ctz(m)); }

// Its index in the kernel's code.
inline std::uint32_t place_of(const Warp& w, const Instruction& i) {
  return static_cast<std::uint32_t>(&i - w.block->kernel->code.data());
}

// "block (3,0,0), thread (17,0,0)" and the source line, for reports.
std::string where(const Warp& w, const Instruction& i, unsigned lane);
void fault(const Warp& w, const Instruction& i, unsigned lane, const std::string& kind, const std::string& text);
[[noreturn]] void fatal(const Warp& w, const Instruction& i, unsigned lane, const std::string& kind,
                        const std::string& text);

// schedule.cpp
void branch(Warp& w, const Instruction& i);
void nothing(Warp& w, const Instruction& i);
void end_lanes(Warp& w, const Instruction& i);
// Brings the lanes of `mask` together; false: the group waits (and the operation is carried out again when all are
// there).
bool meet(Warp& w, const Instruction& i, Lanes mask);
void note_meeting(Warp& w, Lanes mask);
void wait_at_barrier(Warp& w, const Instruction& i);

}  // namespace gpu_model
