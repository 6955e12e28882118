#include "wan/net/log.hpp"

#include <cstdio>
#include <mutex>
#include <set>

#include "wan/net/printable.hpp"

namespace maki::wan {
namespace {

constexpr std::size_t kLongestLine = 4000;

struct State {
  std::mutex mutex;
  LogSink sink;
  std::set<std::string> said;
};

// Never destroyed: I/O threads may have something to say while the process ends.
State& state() {
  static State* const state = new State;
  return *state;
}

const char* name(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo: return "";
    case LogLevel::kWarning: return "warning: ";
    default: return "error: ";
  }
}

}  // namespace

void log(LogLevel level, const std::string& text) {
  const std::string line = printable(text, kLongestLine);
  std::lock_guard lock(state().mutex);
  if (state().sink) {
    state().sink(level, line);
  } else {
    std::fprintf(stderr, "maki wan: %s%s\n", name(level), line.c_str());
  }
}

void set_log_sink(LogSink sink) {
  std::lock_guard lock(state().mutex);
  state().sink = std::move(sink);
  state().said.clear();
}

void log_once(LogLevel level, const std::string& text) {
  {
    std::lock_guard lock(state().mutex);
    if (!state().said.insert(text).second) return;
  }
  log(level, text);
}

}  // namespace maki::wan
