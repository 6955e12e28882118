#include "tests/wan/fuzz/rounds.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

extern "C" void __sanitizer_set_death_callback(void (*)()) __attribute__((weak));

namespace maki::wan::fuzz {
namespace {

char note[200];  // of the round at hand, for one who dies

void print_note() {
  std::size_t length = 0;
  while (note[length] != 0) ++length;
  [[maybe_unused]] const auto written = write(STDERR_FILENO, note, length);
}

// A sanitizer has handlers of its own for signals.
void print_note_at_death() {
  if (__sanitizer_set_death_callback != nullptr) return __sanitizer_set_death_callback(print_note);
  struct sigaction action {};
  action.sa_handler = [](int signal) { print_note(), raise(signal); };
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // so that it ends the process this time
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
}

}  // namespace

void run_rounds(const std::string& what, std::uint64_t frames,
                const std::function<std::uint64_t(std::uint64_t)>& round) {
  [[maybe_unused]] static const bool once = (print_note_at_death(), true);
  const char* wanted = std::getenv("MAKI_FUZZ_SEED");
  std::uint64_t sent = 0;
  for (std::uint64_t seed = wanted ? std::strtoull(wanted, nullptr, 10) : 1; sent < frames; ++seed) {
    const std::string text = fmt::format("{}: MAKI_FUZZ_SEED={}", what, seed);
    std::snprintf(note, sizeof note, "\n%s\n", text.c_str());
    SCOPED_TRACE(text);
    sent += round(seed);
    if (wanted != nullptr || testing::Test::HasFailure()) break;
  }
  note[0] = 0;
}

}  // namespace maki::wan::fuzz
