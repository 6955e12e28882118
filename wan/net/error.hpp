// Errors as a user should see them: what happened, why, and what to do about it; and lines for the operator.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>

namespace maki::wan {

// Text of a peer, made safe to show: everything in messages, errors and logs passes through here. Escapes as \xNN each
// byte of control characters (C0, C1, delete), of marks that hide or reverse text, and of invalid UTF-8; keeps all
// other characters. At most `longest` bytes, then "...". Idempotent.
std::string printable(std::string_view text, std::size_t longest = 500);

// Lines for the operator. The library logs little: insecure settings that it was asked for, problems that it works
// around, and what it gives up.
enum class LogLevel { kInfo, kWarning, kError };

// Logs to the sink, or to stderr as "maki wan: warning: text". Thread-safe. The line is made printable() first, as it
// may quote a peer.
void log(LogLevel level, const std::string& text);

// The new sink of all lines; empty: stderr. Called from any thread, one line at a time.
using LogSink = std::function<void(LogLevel, const std::string&)>;
void set_log_sink(LogSink sink);

// Prints a line of log() to stderr, as without a sink.
void print(LogLevel level, const std::string& line);

// Logs only the first time that this text is given to a sink.
void log_once(LogLevel level, const std::string& text);

// Lines about peers, none of whom may fill a disk: every line is short and safe to show, and their number is limited.
// Thread-safe.
class PeerLog {
 public:
  static constexpr int kAMinute = 60;  // lines of mention() for each peer

  explicit PeerLog(std::function<void(const std::string& line)> sink) : sink_(std::move(sink)) {}
  ~PeerLog();

  // An obligatory line. Code that acts for a peer limits their number itself.
  void record(const std::string& line);
  // An optional line: beyond the limit lines are counted, and their number is logged with the next one or at the end.
  // `peer`: an identity; all without one count together.
  void mention(const std::string& line, const std::string& peer = "");

 private:
  using Clock = std::chrono::steady_clock;
  struct Minute {
    Clock::time_point begin = Clock::now();
    int lines = 0;
  };
  void sum_up(const std::string& peer, const Minute& minute);

  std::function<void(const std::string& line)> sink_;
  std::mutex mutex_;
  std::map<std::string, Minute> minutes_;  // by peer
};

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

// A key or certificate is missing, unsafe or wrong, or the peer could not prove that it holds the right one.
class SecurityError : public Error {
 public:
  using Error::Error;
};

// The peer broke the protocol: this library cannot have sent what arrived.
class ProtocolError : public Error {
 public:
  using Error::Error;
};

// A path has ended: down longer than its patience, refused, closed by its peer, or the peer has restarted.
class PathError : public Error {
 public:
  explicit PathError(const std::string& problem, const std::string& reason = "", const std::string& advice = "",
                     double seconds_down = 0, std::uint64_t bytes_outstanding = 0, bool refused = false)
      : Error(problem, reason, advice), seconds_down_(seconds_down), bytes_outstanding_(bytes_outstanding),
        refused_(refused) {}
  double seconds_down() const { return seconds_down_; }
  std::uint64_t bytes_outstanding() const { return bytes_outstanding_; }  // sent or queued, not acknowledged
  // Whether the peer answered and refused the path: it would refuse another call too.
  bool refused() const { return refused_; }

 private:
  double seconds_down_;
  std::uint64_t bytes_outstanding_;
  bool refused_;
};

}  // namespace maki::wan
