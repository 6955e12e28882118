#include "wan/net/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <set>
#include <utility>

namespace maki::wan {

// ---- text of a peer ------------------------------------------------------------------------------------------------

namespace {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: no character
};

// The first character of a non-empty text (RFC 3629: neither overlong forms nor surrogates).
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  char32_t code = lead & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  const char32_t least = bytes == 4 ? 0x10000 : bytes == 3 ? 0x800 : 0x80;
  if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {code, bytes};
}

// False for control characters, which a terminal obeys, and for marks that make text look different.
bool safe(char32_t code) {
  const auto within = [code](char32_t first, char32_t last) { return code >= first && code <= last; };
  if (code < 0x20 || within(0x7f, 0x9f)) return false;
  return !within(0x200b, 0x200f) && !within(0x2028, 0x202e) && !within(0x2066, 0x2069) && code != 0xfeff;
}

}  // namespace

std::string printable(std::string_view text, std::size_t longest) {
  constexpr std::string_view kMore = "...";
  std::string shown;
  std::size_t whole = 0;  // bytes of `shown` up to a character end that leaves room for kMore
  while (!text.empty()) {
    const Character next = first_of(text);
    const std::size_t bytes = std::max<std::size_t>(next.bytes, 1);
    if (next.bytes > 0 && safe(next.code)) {
      shown += text.substr(0, bytes);
    } else {
      for (const char c : text.substr(0, bytes)) shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    if (shown.size() > longest) return shown.substr(0, whole) + std::string(kMore.substr(0, longest));
    if (shown.size() + kMore.size() <= longest) whole = shown.size();
    text.remove_prefix(bytes);
  }
  return shown;
}

// ---- lines ---------------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kLongestLine = 4000;

struct State {
  std::mutex mutex;
  LogSink sink;
  std::set<std::string> said;
};

// Never destroyed: I/O threads may log while the process ends.
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
    print(level, line);
  }
}

void print(LogLevel level, const std::string& line) {
  std::fprintf(stderr, "maki wan: %s%s\n", name(level), line.c_str());
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

// Errors in writing the log end nothing.
void PeerLog::record(const std::string& line) try {
  constexpr std::size_t kLongest = 1000;
  if (sink_) sink_(printable(line, kLongest));
} catch (const std::exception&) {
}

// The sink, which may wait or mention something itself, is called without the lock.
void PeerLog::mention(const std::string& line, const std::string& peer) {
  Minute over;
  bool counts = false;
  {
    const std::lock_guard lock(mutex_);
    Minute& minute = minutes_[peer];
    if (Clock::now() - minute.begin >= std::chrono::minutes(1)) over = std::exchange(minute, {});
    counts = ++minute.lines <= kAMinute;
  }
  sum_up(peer, over);
  if (counts) record(line);
}

void PeerLog::sum_up(const std::string& peer, const Minute& minute) {
  if (minute.lines > kAMinute)
    record(fmt::format("{} more lines{} were left out", minute.lines - kAMinute, peer.empty() ? "" : " about " + peer));
}

PeerLog::~PeerLog() {
  for (const auto& [peer, minute] : minutes_) sum_up(peer, minute);
}

}  // namespace maki::wan
