#include "wan/net/log.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <set>

namespace maki::wan {
namespace {

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
  std::string line = text;
  // Bytes above 127 are let through: names may be UTF-8.
  std::replace_if(line.begin(), line.end(), [](unsigned char c) { return c < 32 || c == 127; }, '?');
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
