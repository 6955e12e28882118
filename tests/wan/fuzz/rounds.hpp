// Tests with random input: rounds, each with a seed of its own; and messages as a broken or hostile peer may send them:
// those of an honest one, damaged.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

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

// How much a test does: suites whose names begin with Full are for make test-full, and may take long.
inline std::uint64_t few_or_many(std::uint64_t few, std::uint64_t many) {
  const std::string suite = ::testing::UnitTest::GetInstance()->current_test_info()->test_suite_name();
  return suite.starts_with("Full") ? many : few;
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

// Sizes, counts and places as nobody expects them.
inline std::uint64_t wild_number(Random& random) {
  switch (below(random, 6)) {
    case 0: return below(random, 4);
    case 1: return std::uint64_t{1} << below(random, 64);
    case 2: return (std::uint64_t{1} << below(random, 64)) - 1;
    case 3: return ~std::uint64_t{0} - below(random, 64);
    case 4: return below(random, 100'000);
    default: return random();
  }
}

// One number of 1, 2, 4 or 8 bytes at a multiple of its size from the front or the back, where what counts stands.
inline void change_number(std::vector<std::byte>& message, Random& random) {
  const std::size_t bytes = std::size_t{1} << below(random, 4);
  if (message.size() < bytes) return;
  std::size_t at = below(random, message.size() / bytes) * bytes;
  if (!one_in(random, 4)) at %= 64;
  if (one_in(random, 3) && at + bytes <= message.size()) at = message.size() - bytes - at;
  if (at + bytes > message.size()) return;
  const std::uint64_t value = wild_number(random);
  std::memcpy(message.data() + at, &value, bytes);
}

inline void damage(std::vector<std::byte>& message, Random& random) {
  for (auto changes = 1 + below(random, 3); changes > 0; --changes) {
    switch (below(random, 8)) {
      case 0:
        if (!message.empty()) message[below(random, message.size())] ^= static_cast<std::byte>(1 << below(random, 8));
        break;
      case 1:
        if (!message.empty()) message[below(random, message.size())] = static_cast<std::byte>(random());
        break;
      case 2: message.resize(below(random, message.size() + 20)); break;
      case 3:
        message.resize(below(random, 300));
        for (std::byte& b : message) b = static_cast<std::byte>(random());
        break;
      default: change_number(message, random);
    }
  }
}

}  // namespace maki::wan::fuzz
