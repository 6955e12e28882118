// A server's folder and a client's, joined by a connection within the process.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <thread>

#include "tests/wan/net/copy/copy_fixture.hpp"
#include "wan/net/copy/client.hpp"
#include "wan/net/copy/server.hpp"

namespace maki::wan::copy {

inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::size_t kSmallBatch = 64 << 10;

class TwoFolders : public ::testing::Test {
 protected:
  TwoFolders() {
    fs::create_directories(here_ / "served");
    fs::create_directories(here_ / "local");
    start({});
  }
  void start(ServerOptions options) {
    if (!options.others) options.others = Share{served().string()};
    options.batch = kSmallBatch;
    server_ = std::make_unique<Server>(options);
  }
  fs::path served() const { return here_ / "served"; }
  fs::path local() const { return here_ / "local"; }
  CopyOptions options() const {
    CopyOptions options;
    options.batch = kSmallBatch;
    return options;
  }

  // Calls work(client), with the server at the other end; the connection breaks after `budget` bytes.
  template <class Work>
  auto with_client(Work work, std::uint64_t budget = kUnlimited) {
    auto state = std::make_shared<PipeState>(budget);
    PipeChannel far(state, 1);
    ClientState seen_from_there;
    std::thread serving([&] { server_->serve(far, seen_from_there); });
    struct End {
      PipeState& state;
      std::thread& thread;
      ~End() {
        state.cut();
        thread.join();
      }
    } end{*state, serving};
    Client client(std::make_unique<PipeChannel>(state, 0));
    return work(client);
  }
  CopyReport push(const std::string& what, const std::string& to, std::uint64_t budget = kUnlimited) {
    return with_client(
        [&](Client& client) { return client.push({(local() / what).string() + end_of(what)}, to, options()); }, budget);
  }
  CopyReport pull(const std::string& what, const std::string& to, std::uint64_t budget = kUnlimited) {
    return with_client(
        [&](Client& client) { return client.pull({what}, (local() / to).string() + end_of(to), options()); }, budget);
  }
  static std::string end_of(const std::string& name) { return name.ends_with('/') ? "/" : ""; }

  Scratch here_;
  std::unique_ptr<Server> server_;
};

}  // namespace maki::wan::copy
