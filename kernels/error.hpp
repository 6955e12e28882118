// Errors as a user should see them: what happened, why, and what to do about it.
#pragma once

#include <iterator>  // nvcc 13 with libstdc++ 12 needs it before <string>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

// nvcc 12 with libstdc++ 13 finds their traits incomplete where a function of the string is the first to ask for them.
static_assert(sizeof(std::string::iterator) > 0 && sizeof(std::string::const_iterator) > 0);

namespace maki {

// Thrown for everything a user can cause or repair: bad input, missing files, full disks, missing devices.
// what() is the whole message, "problem (reason): advice"; the program prints it and exits with a non-zero code.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& problem, const std::string& reason = "", const std::string& advice = "")
      : std::runtime_error(compose(problem, reason, advice)) {}

 private:
  static std::string compose(const std::string& problem, const std::string& reason, const std::string& advice) {
    std::string text = problem;
    if (!reason.empty()) text += " (" + reason + ")";
    if (!advice.empty()) text += ": " + advice;
    return text;
  }
};

// A device (GPU) is missing, unusable, or reported a failure.
class DeviceError : public Error {
 public:
  using Error::Error;
};

// Returns what the call returns; an Error that leaves it gets the place in front: "place: message".
template <class Call>
auto at_place(const std::string& place, Call&& call) {
  try {
    return call();
  } catch (const Error& error) {
    throw Error(place + ": " + error.what());
  }
}

// what() for a user: of the standard library's errors about memory and threads, too.
inline std::string message_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return "out of memory";
  const auto* const system = dynamic_cast<const std::system_error*>(&error);
  if (system && system->code() == std::errc::resource_unavailable_try_again)
    return "no thread could be started (" + std::string(error.what()) +
           "): raise the limit on processes and threads (ulimit -u, or pids.max of the job's group) or on memory";
  return error.what();
}

}  // namespace maki
