// What most tests of the wide-area module use: errors and lines to be looked at, conditions to be waited for, folders,
// bytes, keys and settings.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/messages.hpp"
#include "tests/temp_dir.hpp"
#include "wan/net/error.hpp"
#include "wan/net/listener.hpp"
#include "wan/net/secure/key.hpp"
#include "wan/net/settings.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan::test {

// ---- errors and lines -----------------------------------------------------------------------------------------------

template <class Kind = Error, class Call>
std::string error_of(Call call) {
  return maki::test::error_of<Kind>(call);
}

using maki::test::says, maki::test::expect_contains;

// Lines of several threads.
class Lines {
 public:
  void add(const std::string& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  // One that has these parts.
  template <class... Part>
  bool has(const Part&... parts) const {
    const auto lines = all();
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) { return (says(line, parts) && ...); });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

// What the library logs while this lives; it is not printed.
class Log : public Lines {
 public:
  Log() {
    set_log_sink([this](LogLevel, const std::string& line) { add(line); });
  }
  ~Log() { set_log_sink({}); }
};

// ---- waiting --------------------------------------------------------------------------------------------------------

inline void pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// Waits for what happens soon in a program that works; the time is for busy machines.
template <class Condition>
bool comes_true(const Condition& condition, double seconds = 40) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    pause(0.005);
  }
  return true;
}

// Does something again and again while it lives.
class Meanwhile {
 public:
  Meanwhile(double every, const std::function<void(unsigned)>& work)
      : thread_([every, work](const std::stop_token& stop) {
          for (unsigned i = 0; !stop.stop_requested(); ++i) {
            pause(every);
            work(i);
          }
        }) {}

 private:
  std::jthread thread_;
};

// ---- folders, bytes, keys, settings ---------------------------------------------------------------------------------

using TemporaryFolder = maki::test::TempDir;

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

inline bool same(std::span<const std::byte> a, std::span<const std::byte> b) { return std::ranges::equal(a, b); }

// Security by a new key of that name in the folder.
inline Security new_key(const TemporaryFolder& folder, const std::string& name = "key") {
  write_key(Key::make(), folder / name);
  return {.key_files = {folder / name}};
}

// Of a listener that admits the holders of both.
inline Security both_of(const Security& one, const Security& other) {
  Security both = one;
  both.key_files.push_back(other.key_files[0]);
  return both;
}

inline Security insecure() { return {.insecure = true}; }

inline PathSettings streams(int count) {
  PathSettings settings;
  settings.streams = count;
  return settings;
}

// ---- descriptors ----------------------------------------------------------------------------------------------------

// How many this process has open.
inline std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

// While it lives nothing can be opened, whatever others close.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit tight{3, before_.rlim_max};  // those of the standard streams, which are open
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

// ---- sockets --------------------------------------------------------------------------------------------------------

// Joined within the kernel: what one end writes the other has at once.
inline std::pair<Socket, Socket> local_pair() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  return {Socket(ends[0]), Socket(ends[1])};
}

// ---- paths ----------------------------------------------------------------------------------------------------------

// What happens soon in a program that works; the time is for busy machines.
template <class Result>
bool is_over(const std::future<Result>& future) {
  return future.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
}

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
    auto accepted = std::async(std::launch::async, [&] { return listener.accept(); });  // it may wait already
    here = Path::connect(listener.address(), security, settings, {"here"}, context);
    there = std::move(accepted.get().path);
  }
  ~Pair() { close_both(here, there); }
};

// Tests with encrypted paths, and the same with plain ones.
class EncryptedOrPlain : public ::testing::TestWithParam<bool> {
 protected:
  Security security() { return GetParam() ? new_key(folder_) : insecure(); }
  static std::string mode() { return GetParam() ? "encrypted" : "plain"; }
  TemporaryFolder folder_;
  Log log_;
};

inline std::string name_of_mode(const ::testing::TestParamInfo<bool>& info) {
  return info.param ? "Encrypted" : "Plain";
}

}  // namespace maki::wan::test
