// The host's side of the CUDA model: launching, options, faults, counters. See cuda_model.hpp for what is modelled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace maki::simt {

enum class FaultKind {
  race,               // two unordered accesses of different threads, at least one a write, not both atomic
  unwritten,          // a read of shared memory that this block never wrote
  out_of_bounds,      // an access outside every buffer
  misaligned,         // an address that is not a multiple of the access's size
  unlanded_copy,      // shared memory touched while an asynchronous copy to it is under way
  divergent_barrier,  // not all threads of the block meet at one __syncthreads
  missing_lane,       // a lane of a mask that does not come to the warp operation, or a caller outside its own mask
  bad_shuffle,        // a shuffle from a lane outside the mask
  endless,            // a block that used up Options::patience
  exception,          // a C++ exception left the kernel
  bad_launch,         // a launch that no device would take
};
const char* to_string(FaultKind kind);

// A line of source, and the thread that was there; thread is -1 where it is not known.
struct Place {
  std::string file;
  int line = 0;
  unsigned block = 0;
  int thread = -1;
};

// Ends the launch in which it happened. what() is the whole message: kernel, block, thread, what, lines, seed.
class Fault : public std::runtime_error {
 public:
  Fault(FaultKind kind, std::string kernel, Place place, Place other, std::string buffer, const std::string& text)
      : std::runtime_error(text), kind(kind), kernel(std::move(kernel)), block(place.block), thread(place.thread),
        file(place.file), line(place.line), other(std::move(other)), buffer(std::move(buffer)) {}

  FaultKind kind;
  std::string kernel;
  unsigned block;
  int thread;
  std::string file;
  int line;
  Place other;         // races and barriers: the other side
  std::string buffer;  // memory faults: the buffer's name
};

struct Options {
  std::uint64_t seed = 1;
  unsigned preempt = 64;  // a thread gives way after this many accesses in the mean; 0: only where it has to wait
  std::uint64_t patience = std::uint64_t{1} << 28;  // accesses and switches of a block before it counts as endless
};
// Starts the sequence of random numbers anew. The first options are the default with MAKI_SIMT_SEED, where it is set.
void set_options(const Options& options);
Options options();

struct Counters {
  std::uint64_t launches = 0, blocks = 0, threads = 0;
  std::uint64_t switches = 0;  // from one thread to another
  std::uint64_t accesses = 0;  // checked ones
};
Counters counters();

// Whether faults can be told their lines: that takes addr2line (binutils) on this machine.
bool knows_lines();

// Runs body(seed) with n different seeds and the other options as they are; restores the options.
template <class Body>
void for_seeds(unsigned n, const Body& body) {
  const struct Restore {
    Options before = options();
    ~Restore() { set_options(before); }
  } restore;
  for (unsigned i = 0; i < n; ++i) {
    Options now = restore.before;
    now.seed += i;
    set_options(now);
    body(now.seed);
  }
}

// One launch: runs `callable` in every thread of every block and returns when all are done. Throws Fault.
// What the callable captures is copied to the threads' reach and must be captured by value.
void launch_threads(const char* name, unsigned grid, unsigned block, std::size_t shared_bytes,
                    void (*run)(const void* callable), const void* callable, std::size_t callable_bytes);

template <class Callable>
void launch(const char* name, unsigned grid, unsigned block, std::size_t shared_bytes, const Callable& callable) {
  launch_threads(name, grid, block, shared_bytes, [](const void* c) { (*static_cast<const Callable*>(c))(); },
                 &callable, sizeof callable);
}

}  // namespace maki::simt
