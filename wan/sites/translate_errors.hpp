// The boundary between the errors of wan/net, which is a library of its own, and those of the application.
#pragma once

#include <string>
#include <utility>

#include "wan/net/error.hpp"
#include "wan/sites/ring.hpp"

namespace maki::sites {

// The result of `call`. A wan::Error that leaves it becomes an Error: describe(text) gives it, or the text alone is it.
template <class Call, class Describe>
decltype(auto) translate_errors(Call&& call, Describe&& describe) {
  try {
    return std::forward<Call>(call)();
  } catch (const wan::Error& error) {
    throw describe(error.what());
  }
}
template <class Call>
decltype(auto) translate_errors(Call&& call) {
  return translate_errors(std::forward<Call>(call), [](const std::string& text) { return Error(text); });
}

}  // namespace maki::sites
