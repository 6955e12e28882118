// Lines for the operator. The library says little: what it was asked to do insecurely, what it works around, what it gives up.
#pragma once

#include <functional>
#include <string>

namespace maki::wan {

enum class LogLevel { kInfo, kWarning, kError };

// To the sink, or to stderr as "maki wan: warning: text". Any thread. A line may quote a peer: it is made printable() first.
void log(LogLevel level, const std::string& text);

// Where lines go from now on; an empty one: stderr. Called from any thread, one line at a time.
using LogSink = std::function<void(LogLevel, const std::string&)>;
void set_log_sink(LogSink sink);

// Only the first time that this text is given to a sink.
void log_once(LogLevel level, const std::string& text);

}  // namespace maki::wan
