// Errors of the wide-area module as a user should see them: what happened, why, and what to do about it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "wan/net/log.hpp"

namespace maki::wan {

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
