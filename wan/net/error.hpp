// Errors as a user should see them: what happened, why, and what to do about it; and lines for the operator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
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

// what() is the whole message, "problem (reason): advice", made printable(): it may quote a peer.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& problem, const std::string& reason = "", const std::string& advice = "")
      : std::runtime_error(compose(problem, reason, advice)) {}

 private:
  static std::string compose(const std::string& problem, const std::string& reason, const std::string& advice) {
    std::string text = problem;
    if (!reason.empty()) text += " (" + reason + ")";
    if (!advice.empty()) text += ": " + advice;
    return printable(text, kLongest);
  }
  static constexpr std::size_t kLongest = 4000;
};

// A key or certificate is missing, unsafe or wrong, or the peer could not show that it holds the right one.
class SecurityError : public Error {
 public:
  using Error::Error;
};

// The peer broke the protocol: what came cannot be what this library sends.
class ProtocolError : public Error {
 public:
  using Error::Error;
};

// A path is gone for good: down longer than its patience, refused, closed by its peer, or the peer has started anew.
class PathError : public Error {
 public:
  explicit PathError(const std::string& problem, const std::string& reason = "", const std::string& advice = "",
                     double seconds_down = 0, std::uint64_t bytes_outstanding = 0)
      : Error(problem, reason, advice), seconds_down_(seconds_down), bytes_outstanding_(bytes_outstanding) {}
  double seconds_down() const { return seconds_down_; }
  std::uint64_t bytes_outstanding() const { return bytes_outstanding_; }  // sent or to be sent, not acknowledged

 private:
  double seconds_down_;
  std::uint64_t bytes_outstanding_;
};

}  // namespace maki::wan
