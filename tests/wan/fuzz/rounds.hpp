// Tests with random input: rounds, each with a seed of its own.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>

extern "C" void __sanitizer_set_death_callback(void (*)()) __attribute__((weak));

namespace maki::wan::fuzz {

using Random = std::mt19937_64;

inline std::uint64_t below(Random& random, std::uint64_t end) { return random() % end; }
inline bool one_in(Random& random, std::uint64_t n) { return random() % n == 0; }
template <class T, std::size_t n>
T any_of(Random& random, const T (&choices)[n]) {
  return choices[random() % n];
}

inline char note[200];  // of the round at hand, for one who dies

inline void print_note() {
  std::size_t length = 0;
  while (note[length] != 0) ++length;
  [[maybe_unused]] const auto written = write(STDERR_FILENO, note, length);
}

// A sanitizer has handlers of its own for signals.
inline void print_note_at_death() {
  if (__sanitizer_set_death_callback != nullptr) return __sanitizer_set_death_callback(print_note);
  struct sigaction action {};
  action.sa_handler = [](int signal) { print_note(), raise(signal); };
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // so that it ends the process this time
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
}

// `round(seed)` says how many frames (or messages) it sent; rounds of seeds 1, 2, ... until there were so many, or one
// fails. The seed is printed then, and where the process dies. MAKI_FUZZ_SEED=n in the environment runs that round
// alone.
inline void run_rounds(const std::string& what, std::uint64_t frames,
                       const std::function<std::uint64_t(std::uint64_t)>& round) {
  [[maybe_unused]] static const bool once = (print_note_at_death(), true);
  const char* wanted = std::getenv("MAKI_FUZZ_SEED");
  std::uint64_t sent = 0;
  for (std::uint64_t seed = wanted ? std::strtoull(wanted, nullptr, 10) : 1; sent < frames; ++seed) {
    const std::string text = fmt::format("{}: MAKI_FUZZ_SEED={}", what, seed);
    std::snprintf(note, sizeof note, "\n%s\n", text.c_str());
    SCOPED_TRACE(text);
    sent += round(seed);
    if (wanted != nullptr || ::testing::Test::HasFailure()) break;
  }
  note[0] = 0;
}

}  // namespace maki::wan::fuzz
