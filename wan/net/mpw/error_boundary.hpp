// Where the library's exceptions end: MPWide's calls have none.
#pragma once

#include <exception>
#include <string>
#include <type_traits>

#include "wan/net/mpw.h"

namespace maki::wan::mpw {

MPW_ErrorHandler set_error_handler(MPW_ErrorHandler handler);

// Prints `message`, or hands it to the handler.
void tell(const std::string& message);
// The same, and without a handler ends the program.
void fail(const std::string& message);

// What `call` gives; a negative value (true, for bool) where it throws. Ends the program then, unless there is a handler.
template <class Call>
auto guarded(Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& error) {
    fail(error.what());
  }
  using Value = decltype(call());
  if constexpr (std::is_same_v<Value, bool>)
    return true;
  else if constexpr (!std::is_void_v<Value>)
    return Value(-1);
}

// For calls that report failure by their value always.
template <class Call>
int reported(Call call) {
  try {
    return call();
  } catch (const std::exception& error) {
    tell(error.what());
  }
  return -1;
}

}  // namespace maki::wan::mpw
