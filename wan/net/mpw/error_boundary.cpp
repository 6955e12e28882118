#include "wan/net/mpw/error_boundary.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "wan/net/log.hpp"

namespace maki::wan::mpw {
namespace {

std::atomic<MPW_ErrorHandler> handler_now{nullptr};
std::atomic<bool> ending{false};

}  // namespace

MPW_ErrorHandler set_error_handler(MPW_ErrorHandler handler) { return handler_now.exchange(handler); }

void tell(const std::string& message) {
  if (const MPW_ErrorHandler handler = handler_now)
    handler(message.c_str());
  else
    log(LogLevel::kError, message);
}

// The first failure is the one to tell: closing paths at the end makes calls of other threads fail too.
void fail(const std::string& message) {
  if (handler_now != nullptr) return tell(message);
  if (ending.exchange(true)) {
    while (true) pause();
  }
  log(LogLevel::kError, message);
  std::exit(1);
}

}  // namespace maki::wan::mpw
