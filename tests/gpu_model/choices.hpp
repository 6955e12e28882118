// Choices that a real machine leaves open, drawn from one seed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpu_model {

// Numbers for them; MAKI_GPU_MODEL_SEED sets the first.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull) {}
  std::uint64_t next() {  // xorshift64*
    state_ ^= state_ >> 12, state_ ^= state_ << 25, state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1dull;
  }
  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
  }

 private:
  std::uint64_t state_;
};
Choices& choices();            // of the runtime: which work is carried out next
std::uint64_t choices_seed();  // MAKI_GPU_MODEL_SEED, else 1

}  // namespace gpu_model
