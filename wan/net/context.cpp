#include "wan/net/context.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <thread>

#include "wan/net/error.hpp"
#include "wan/net/socket/event_loop.hpp"

namespace maki::wan {

Context::Context(int threads) {
  if (threads < 1 || threads > 256) throw Error("a context of " + std::to_string(threads) + " I/O threads", "1 to 256");
  loops_.resize(static_cast<std::size_t>(threads));
}

Context::~Context() = default;

EventLoop& Context::next_loop() {
  const std::lock_guard lock(mutex_);
  const std::size_t turn = next_++ % loops_.size();
  if (!loops_[turn]) loops_[turn] = std::make_unique<EventLoop>("maki-wan-" + std::to_string(turn));
  return *loops_[turn];
}

EventLoop& Context::handshakes() {
  const std::lock_guard lock(mutex_);
  if (!handshakes_) handshakes_ = std::make_unique<EventLoop>("maki-handshakes");
  return *handshakes_;
}

// Never destroyed, for paths may be static objects that close after it. So its threads may still be in OpenSSL while
// the process ends, and OpenSSL must not take itself apart then.
Context& Context::shared() {
  static Context* const shared = [] {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
    return new Context(static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 8u)));
  }();
  return *shared;
}

}  // namespace maki::wan
