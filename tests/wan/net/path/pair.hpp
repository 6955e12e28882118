// Two ends of a path over loopback, for tests.
#pragma once

#include <future>

#include "tests/wan/helpers.hpp"
#include "wan/net/listener.hpp"

namespace maki::wan::test {

// Closes both at once: neither waits for the other.
inline void close_both(Path& here, Path& there) {
  auto closing = std::async(std::launch::async, [&] { there.close(5); });
  here.close(5);
}

struct Pair {
  Listener listener;
  Path here, there;  // connecting, accepted

  explicit Pair(const PathSettings& settings, const Security& security = insecure(),
                Context& context = Context::shared())
      : listener({"127.0.0.1", 0}, security, settings, {}, {}, context) {
    auto accepted = std::async(std::launch::async, [&] { return listener.accept(); });
    here = Path::connect(listener.address(), security, settings, {"here"}, context);
    there = std::move(accepted.get().path);
  }
  ~Pair() { close_both(here, there); }
};

}  // namespace maki::wan::test
