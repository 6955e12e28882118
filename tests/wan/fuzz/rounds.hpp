// Tests with random input: rounds, each with a seed of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>

namespace maki::wan::fuzz {

using Random = std::mt19937_64;

inline std::uint64_t below(Random& random, std::uint64_t end) { return random() % end; }
inline bool one_in(Random& random, std::uint64_t n) { return random() % n == 0; }
template <class T, std::size_t n>
T any_of(Random& random, const T (&choices)[n]) {
  return choices[random() % n];
}

// `round(seed)` says how many frames (or messages) it sent; rounds of seeds 1, 2, ... until there were so many, or one
// fails. The seed is printed then, and where the process dies. MAKI_FUZZ_SEED=n in the environment runs that round alone.
void run_rounds(const std::string& what, std::uint64_t frames,
                const std::function<std::uint64_t(std::uint64_t seed)>& round);

}  // namespace maki::wan::fuzz
