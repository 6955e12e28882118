// What the tests of copying share: folders that go away, trees of files, servers, and a connection within the process that
// can be cut.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "tests/wan/helpers.hpp"
#include "wan/net/copy/message_channel.hpp"
#include "wan/net/copy/root.hpp"
#include "wan/net/copy/server.hpp"
#include "wan/net/listener.hpp"

namespace maki::wan::copy {

namespace fs = std::filesystem;

// A temporary folder, for those who work with paths.
class Scratch : public test::TemporaryFolder {
 public:
  fs::path operator/(const std::string& name) const { return path(name); }
};

void write_file(const fs::path& path, const std::string& contents);
std::string read_file(const fs::path& path);
std::string random_text(std::size_t bytes, unsigned seed);
// `files` small ones of 0 to 9000 bytes in nested folders, an empty folder, an empty file.
void make_tree(const fs::path& folder, int files, unsigned seed = 1);
// "" where both hold the same: names, contents, modes and times (of folders the modes); else the first difference.
std::string difference(const fs::path& a, const fs::path& b);
// How many unfinished files there are below.
int parts_below(const fs::path& folder);

// Options of a server that shares one folder with whoever may call.
inline ServerOptions sharing(const fs::path& root) {
  ServerOptions options;
  options.others = Share{root.string()};
  return options;
}

// A server on a port of this machine, until it ends.
class RunningServer {
 public:
  RunningServer(const ServerOptions& options, const Security& security, const PathSettings& settings = test::streams(4),
                std::uint16_t port = 0)
      : security_(security), listener_({"127.0.0.1", port}, security, settings), server_(options),
        thread_([this] { server_.run(listener_); }) {}
  ~RunningServer() { stop(); }
  void stop() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }
  Endpoint address() const { return listener_.address(); }
  Path path() const { return Path::connect(address(), security_, test::streams(4), {"test"}); }

 private:
  Security security_;
  Listener listener_;
  Server server_;
  std::thread thread_;
};

// Two ends that pass messages to each other in memory; after `budget` bytes of file contents, both ways together, the
// connection breaks as a lost path would.
class PipeState {
 public:
  explicit PipeState(std::uint64_t budget) : budget_(budget) {}
  void put(int end, Tag tag, Bytes message);
  Bytes take(int end, Tag tag);
  std::optional<Bytes> take_for(int end, Tag tag, double seconds);
  void cut();
  bool broken() const;
  // Messages of this tag wait to be taken from hold() to release(); wait_for(): until there is one.
  void hold(Tag tag);
  void wait_for(Tag tag);
  void release(Tag tag);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, Tag>, std::deque<Bytes>> queues_;
  std::uint64_t budget_;
  bool broken_ = false;
  Tag held_ = 0;
};

class PipeChannel : public MessageChannel {
 public:
  PipeChannel(std::shared_ptr<PipeState> state, int end) : state_(std::move(state)), end_(end) {}
  void send(Tag tag, Bytes message) override { state_->put(1 - end_, tag, std::move(message)); }
  Bytes receive(Tag tag) override { return state_->take(end_, tag); }
  std::optional<Bytes> receive_for(Tag tag, double seconds) override { return state_->take_for(end_, tag, seconds); }
  void flush() override {}
  void give_up() override { state_->cut(); }
  bool given_up() const override { return state_->broken(); }
  std::string peer() const override { return "the other end"; }

 private:
  std::shared_ptr<PipeState> state_;
  int end_;
};

}  // namespace maki::wan::copy
