#include "wan/net/context.hpp"

#include <openssl/crypto.h>

#include "wan/net/error.hpp"
#include "wan/net/socket/event_loop.hpp"

namespace maki::wan {

Context::Context(int threads) {
  if (threads < 1 || threads > 256) throw Error("a context of " + std::to_string(threads) + " I/O threads", "1 to 256");
  for (int i = 0; i < threads; ++i) loops_.push_back(std::make_unique<EventLoop>("maki-wan-" + std::to_string(i)));
}

Context::~Context() = default;

EventLoop& Context::next_loop() { return *loops_[next_.fetch_add(1, std::memory_order_relaxed) % loops_.size()]; }

// Never destroyed, for paths may be static objects that close after it. So its thread may still be in OpenSSL while the
// process ends, and OpenSSL must not take itself apart then.
Context& Context::shared() {
  static Context* const shared = [] {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
    return new Context(1);
  }();
  return *shared;
}

}  // namespace maki::wan
