// The side of a measurement that is called: does what the caller orders, with the settings that the caller names.
#pragma once

#include <functional>
#include <string>

#include "wan/net/settings.hpp"

namespace maki::wan {

struct BenchService {
  Endpoint local;
  Security security;
  PathSettings settings;  // what the caller does not decide: timeouts, limits
  RelayRoute relay;
  bool once = false;                                                        // ends with the first caller's bye
  std::function<void(const Endpoint&)> listening = [](const Endpoint&) {};  // where, once it does
  std::function<void(const std::string&)> say = [](const std::string&) {};  // callers that come and go
  std::function<bool()> stop = [] { return false; };                        // asked while nobody is there
};

// One caller after the other. Returns when `stop` says so, or after one with `once`. Throws Error, SecurityError where
// listening fails; a caller that is lost or talks nonsense ends its own measurement only.
void serve_bench(const BenchService& service);

}  // namespace maki::wan
