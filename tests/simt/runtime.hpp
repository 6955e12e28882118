// Inside the CUDA model: what the scheduler, the memory checks and the reports share. Tests do not include it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/simt/cuda_warp.hpp"
#include "tests/simt/model.hpp"

namespace maki::simt {

inline constexpr unsigned kLanes = 32, kMostThreads = 1024, kMostWarps = kMostThreads / kLanes;
inline constexpr std::size_t kStackBytes = std::size_t{1} << 16;
inline constexpr std::size_t kMostShared = 227 * 1024;

enum class Access { read, write, atomic };

// ---- shadow memory ------------------------------------------------------------------------------------------------
// Time is counted in phases: a new one begins with every block and with every barrier of a block, and none comes twice
// in the life of the program. So what an earlier launch left is recognised by its number and never has to be cleared.
// Inside a phase the lanes of a warp have clocks of their own, joined by __syncwarp; warps are unordered.

// A set of accesses to the same bytes that nothing orders, or a single one.
struct Slot {
  std::uint32_t phase;
  std::uint32_t lanes;  // who, of `warp`
  std::uint32_t clock;  // theirs at the access
  std::uint32_t pc;     // of the first of them
  std::uint32_t
      second;  // several: pc of one in another warp; spilled: where their clocks are; split: where its bytes are
  std::uint16_t second_thread;
  std::uint8_t warp;
  std::uint8_t flags;
};
inline constexpr std::uint8_t kAtomic = 1;     // atomic accesses
inline constexpr std::uint8_t kSeveral = 2;    // of at least two warps
inline constexpr std::uint8_t kSpilled = 4;    // of one warp, with different clocks
inline constexpr std::uint8_t kSplit = 8;      // bytes of the word have been accessed: see the cell of each
inline constexpr std::uint8_t kInFlight = 16;  // an asynchronous copy to here has not landed

// What is known of four bytes (or of one, when split): the last write or the atomics since, the reads since, and
// one read and one atomic of earlier blocks of the launch.
struct Cell {
  Slot write, read;
  std::uint32_t older_read, older_read_pc, older_atomic, older_atomic_pc;
};
static_assert(sizeof(Cell) == 64);

struct Region {
  enum class Kind { buffer, dynamic_shared, static_shared, read_only, arguments };
  Kind kind;
  std::uintptr_t begin;
  std::size_t bytes;
  Cell* cells;  // nullptr: may be read, and that is all
  std::string name;
  std::uint64_t block = 0;  // shared: which block it was made fresh for

  bool shared() const { return kind == Kind::dynamic_shared || kind == Kind::static_shared; }
};

// ---- what every access looks at -----------------------------------------------------------------------------------
struct Hot {
  bool active = false;       // a kernel's own code is running
  std::uintptr_t stack = 0;  // of the running thread
  std::uint32_t budget = 0;  // accesses until it gives way
  std::uint32_t phase = 0, block_start = 0, launch_start = 1;
  std::uint32_t clock = 0;  // of the running lane
  std::uint32_t known = 0;  // what it knows of every other lane at least
  std::uint32_t bit = 0;    // its lane
  std::uint32_t warp = 0;
  std::uint32_t* known_lanes = nullptr;  // what it knows of each lane
  std::uint64_t block_serial = 0;
  std::uint64_t accesses = 0;
  std::uintptr_t image = 0;   // where the program lies
  Region* recent[1024] = {};  // by place in the program
};
extern Hot hot;

// While the model itself works, accesses are not those of a kernel. (The compiler must not think that memset and the
// like, which are ours, do not look at the flag.)
class Pause {
 public:
  Pause() : was_(hot.active) {
    hot.active = false;
    asm volatile("" ::: "memory");
  }
  ~Pause() {
    asm volatile("" ::: "memory");
    hot.active = was_;
  }
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

 private:
  bool was_;
};

inline std::uint32_t place_of(const void* return_address) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(return_address) - 1 - hot.image);
}

// ---- threads ------------------------------------------------------------------------------------------------------
struct PendingCopy {
  char* to;
  const char* from;
  std::size_t bytes;
  std::uint32_t pc;
  std::uint32_t batch;
};

struct Thread {
  enum class State { ready, at_barrier, at_warp_operation, parked, done };
  void* context = nullptr;
  unsigned index = 0;
  State state = State::ready;
  Site site{};
  BlockOp block_op{};
  WarpOp op{};
  unsigned mask = 0;
  int predicate = 0, argument = 0, width = 32;
  std::uint64_t value = 0, result = 0;
  std::uint32_t clock = 1, known = 0;
  bool fenced = false;
  std::uint32_t batch = 0;
  std::vector<PendingCopy> copies;

  unsigned warp() const { return index / kLanes; }
  unsigned lane() const { return index % kLanes; }
};

struct Launch {
  const char* name = "";
  unsigned grid = 0, block_size = 0;
  std::size_t shared_bytes = 0;
  void (*run)(const void*) = nullptr;
  const void* callable = nullptr;
  unsigned block = 0;                       // the running one
  Thread* thread = nullptr;                 // the running one
  unsigned waiting = 0, first_waiting = 0;  // threads at the barrier
  unsigned done = 0;                        // threads that have ended
  std::vector<Thread> threads;
  std::vector<std::uint32_t> clocks;  // [warp][lane][lane]: what the one knows of the other
  std::vector<std::uint32_t> starts;  // first phase of each block begun, ascending
  std::vector<unsigned> order;        // and its number
};
extern Launch running;

unsigned block_of_phase(std::uint32_t phase);
std::uint64_t random_number();
std::uint32_t draw_budget();  // accesses until a thread gives way
std::vector<unsigned> block_order(unsigned grid);
void thread_order(std::vector<unsigned>& order, unsigned threads);  // one of four kinds
void give_way_now();  // to another thread that can run, from within a thread
void make_ready(unsigned thread);
void make_all_ready();
void wait_for_turn();        // until make_ready
void wait_for_all_others();  // until none of the block can go on
bool same(Site a, Site b);

// ---- memory -------------------------------------------------------------------------------------------------------
void start_launch_memory(const void* callable, std::size_t callable_bytes);
void start_block_memory();
void* shared_memory();
// The region of an access; a fault where there is none. `size` bytes lie in it.
Region* find_region(std::uintptr_t address, std::size_t size, Access access, std::uint32_t pc);
void refresh(Region& region);  // a block's first touch of shared memory
// Check an access of the running thread and note it. Asynchronous copies: when they start and when they land.
void check_read(const void* address, std::size_t size, std::uint32_t pc);
void check_atomic(const void* address, std::size_t size, bool reads, std::uint32_t pc);
void check_issue(const void* shared, std::size_t size, std::uint32_t pc);
void check_landing(const void* shared, std::size_t size, std::uint32_t pc);
bool is_stack(std::uintptr_t address);                                                // some thread's
const char* verb(Access access);                                                      // "reads "
std::string span_of(const Region& region, std::uintptr_t address, std::size_t size);  // "4 bytes at offset 8 of 'x'"
// Whether what an earlier block did in `slot` comes before the running thread, through fences and atomics.
bool acquired(const Slot& slot);

// Grows only; the memory stays untouched until it is used.
void* reserve(std::size_t bytes);
void release_reserved(void* memory, std::size_t bytes);

// ---- the program's image ------------------------------------------------------------------------------------------
struct Segment {
  std::uintptr_t begin, end;
  bool writable;
};
const std::vector<Segment>& segments();
std::vector<Region>& static_shared();  // sorted by address; cells are set
const Region* static_shared_near(std::uintptr_t address);
// The lines of `pc` outside the model's own code: the innermost first, then where that is inlined.
const std::vector<Place>& sources_of(std::uint32_t pc);

// ---- reports ------------------------------------------------------------------------------------------------------
struct Report {
  FaultKind kind{};
  std::uint32_t pc = 0;  // where; 0: `site` says it
  Site site{};
  int thread = -1;  // -1: the running one
  bool has_other = false;
  std::uint32_t other_pc = 0;
  Site other_site{};
  int other_thread = -1;
  unsigned other_block = 0;
  std::string buffer{};
  std::string what{};  // "4 bytes written at offset 12 of 'x' ..."
  std::string other_what{};
  std::vector<std::uint32_t> callers{};  // return addresses, innermost first
};
// Ends the launch from within a thread.
[[noreturn]] void fail(Report report);
// The same from the launcher's side.
[[noreturn]] void throw_fault(const Report& report);
std::string name_thread(unsigned index);

}  // namespace maki::simt
