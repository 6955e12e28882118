// Lines for the operator, and words of a peer made safe to be shown.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace maki::wan {

// Words of a peer, made safe to be shown: whatever goes into a message, an error or a log passes through here. `text`
// with each byte of control characters (C0, C1, delete), of marks that hide or turn text around, and of what is no
// UTF-8 as \xNN; all other characters as they are. At most `longest` bytes, then "...". Of its own result it changes
// nothing.
std::string printable(std::string_view text, std::size_t longest = 500);

// Lines for the operator. The library says little: what it was asked to do insecurely, what it works around, what it
// gives up.
enum class LogLevel { kInfo, kWarning, kError };

// To the sink, or to stderr as "maki wan: warning: text". Any thread. A line may quote a peer: it is made printable()
// first.
void log(LogLevel level, const std::string& text);

// Where lines go from now on; an empty one: stderr. Called from any thread, one line at a time.
using LogSink = std::function<void(LogLevel, const std::string&)>;
void set_log_sink(LogSink sink);

// Only the first time that this text is given to a sink.
void log_once(LogLevel level, const std::string& text);

}  // namespace maki::wan
