// Faults: what the model finds wrong with a program. Each is written to standard error when it is found (the same one, at
// the same line, once), kept for tests that expect it, and makes the program end with exit code 86 unless it was taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpu_model {

struct Fault {
  std::string kind;   // "out of bounds", "race in a block", ...; README.md lists them
  std::string where;  // kernel, block, thread, source line; or the call
  std::string text;   // what happened
};

void report(Fault fault);
// Thrown after report() where a kernel cannot go on: the launch ends, and the program gets cudaErrorLaunchFailure or the like.
struct Stopped {
  int code = 719;  // a cudaError_t
};

// While it lives, faults are kept, but not written: somebody expects them.
class Expected {
 public:
  Expected();
  ~Expected();
};

// All that were found since the last call, in order.
std::vector<Fault> take_faults();

// Called once when the program ends, also where it fails by its faults.
void at_program_end(void (*function)());

// A number that is drawn for every choice that a real machine leaves open; MAKI_GPU_MODEL_SEED sets the first.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull) {}
  std::uint64_t next() {  // xorshift64*
    state_ ^= state_ >> 12, state_ ^= state_ << 25, state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1dull;
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>((static_cast<unsigned __int128>(next()) * n) >> 64); }

 private:
  std::uint64_t state_;
};
Choices& choices();            // of the runtime: which work is carried out next
std::uint64_t choices_seed();  // MAKI_GPU_MODEL_SEED, else 1

}  // namespace gpu_model
