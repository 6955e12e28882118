// Two ends of a path over loopback, for tests.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <random>
#include <string>
#include <vector>

#include "tests/wan/temporary_folder.hpp"
#include "wan/net/listener.hpp"
#include "wan/net/secure/key.hpp"

namespace maki::wan::test {

inline Security new_key(const TemporaryFolder& folder, const std::string& name = "key") {
  write_key(Key::make(), folder / name);
  Security security;
  security.key_files = {folder / name};
  return security;
}

inline Security insecure() {
  Security security;
  security.insecure = true;
  return security;
}

inline PathSettings streams(int count) {
  PathSettings settings;
  settings.streams = count;
  return settings;
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
  ~Pair() {  // both at once: neither waits for the other
    auto closing = std::async(std::launch::async, [&] { there.close(5); });
    here.close(5);
  }
};

inline std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  std::mt19937_64 random(seed);
  std::size_t at = 0;
  for (; at + 8 <= size; at += 8) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + at, &word, 8);
  }
  for (; at < size; ++at) bytes[at] = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace maki::wan::test
