// What the tests of copying share: folders that go away, trees of files, servers, and a connection within the process
// that can be cut.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "tests/places.hpp"
#include "tests/wan/helpers.hpp"
#include "wan/net/copy/message_channel.hpp"
#include "wan/net/copy/root.hpp"
#include "wan/net/copy/server.hpp"
#include "wan/net/listener.hpp"

namespace maki::wan::copy {

namespace fs = std::filesystem;

inline std::string describe(const fs::path& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return "nothing";
  if (S_ISDIR(status.st_mode)) return fmt::format("folder {:o}", status.st_mode & 07777);
  return fmt::format("type {:o} mode {:o} size {} time {}.{:09}", status.st_mode & S_IFMT, status.st_mode & 07777,
                     status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

inline std::map<std::string, fs::path> all_below(const fs::path& folder) {
  std::map<std::string, fs::path> found;
  for (const auto& item : fs::recursive_directory_iterator(folder))
    found[fs::relative(item.path(), folder)] = item.path();
  return found;
}

// A temporary folder, for those who work with paths.
class Scratch : public test::TemporaryFolder {
 public:
  fs::path operator/(const std::string& name) const { return path(name); }
};

inline void write_file(const fs::path& path, const std::string& contents) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << contents;
}

inline std::string read_file(const fs::path& path) { return maki::test::text_of(path); }

inline std::string random_text(std::size_t bytes, unsigned seed) {
  const auto all = test::pattern(bytes, seed);
  return {reinterpret_cast<const char*>(all.data()), all.size()};
}

// `files` small ones of 0 to 9000 bytes in nested folders, an empty folder, an empty file.
inline void make_tree(const fs::path& folder, int files, unsigned seed = 1) {
  std::mt19937 random(seed);
  fs::create_directories(folder / "empty folder" / "inner");
  write_file(folder / "empty file", "");
  for (int i = 0; i < files; ++i) {
    const fs::path path =
        folder / fmt::format("d{}", i % 7) / fmt::format("e{}", i % 3) / fmt::format("file {}.dat", i);
    write_file(path, random_text(random() % 9000, seed + static_cast<unsigned>(i)));
    chmod(path.c_str(), i % 5 == 0 ? 0444 : 0640);
    const timespec times[2] = {{0, UTIME_OMIT}, {1000000000 + i, 123456789 - i}};
    utimensat(AT_FDCWD, path.c_str(), times, 0);
  }
  chmod((folder / "d1").c_str(), 0750);
}

// "" where both hold the same: names, contents, modes and times (of folders the modes); else the first difference.
inline std::string difference(const fs::path& a, const fs::path& b) {
  const auto in_a = all_below(a), in_b = all_below(b);
  for (const auto& [name, path] : in_b)
    if (!in_a.contains(name)) return name + " is only in the second";
  for (const auto& [name, path] : in_a) {
    const auto other = in_b.find(name);
    if (other == in_b.end()) return name + " is only in the first";
    if (describe(path) != describe(other->second))
      return name + ": " + describe(path) + " but " + describe(other->second);
    if (fs::is_regular_file(path) && read_file(path) != read_file(other->second)) return name + " has other contents";
  }
  return "";
}

// How many unfinished files there are below.
inline int parts_below(const fs::path& folder) {
  int count = 0;
  for (const auto& [name, path] : all_below(folder)) count += is_part_name(path.filename().string());
  return count;
}

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
  void put(int end, Tag tag, Bytes message) {
    std::unique_lock lock(mutex_);
    auto& queue = queues_[{end, tag}];
    changed_.wait(lock, [&] { return broken_ || queue.size() < kMostQueued; });
    if (tag == kDataTag) {
      if (message.size > budget_) broken_ = true;
      budget_ -= std::min<std::uint64_t>(budget_, message.size);
    }
    changed_.notify_all();
    if (broken_) throw PathError("the connection was cut");
    queue.push_back(std::move(message));
  }
  // What had arrived is still delivered, as by a path.
  std::optional<Bytes> take_for(int end, Tag tag, double seconds) {
    std::unique_lock lock(mutex_);
    auto& queue = queues_[{end, tag}];
    const auto there = [&] { return broken_ || (!queue.empty() && tag != held_); };
    if (!changed_.wait_for(lock, std::chrono::duration<double>(seconds), there)) return {};
    if (queue.empty()) throw PathError("the connection was cut");
    Bytes message = std::move(queue.front());
    queue.pop_front();
    changed_.notify_all();
    return message;
  }
  void cut() {
    const std::lock_guard lock(mutex_);
    broken_ = true;
    changed_.notify_all();
  }
  bool broken() const {
    const std::lock_guard lock(mutex_);
    return broken_;
  }
  // Messages of this tag wait to be taken from hold() to release(); wait_for(): until there is one.
  void hold(Tag tag) {
    const std::lock_guard lock(mutex_);
    held_ = tag;
  }
  void wait_for(Tag tag) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return broken_ || !queues_[{0, tag}].empty() || !queues_[{1, tag}].empty(); });
  }
  void release() {
    const std::lock_guard lock(mutex_);
    held_ = 0;
    changed_.notify_all();
  }

 private:
  static constexpr std::size_t kMostQueued = 32;
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
  std::optional<Bytes> receive_for(Tag tag, double seconds) override { return state_->take_for(end_, tag, seconds); }
  std::uint64_t under_way() override { return 0; }
  void flush() override {}
  void give_up() override { state_->cut(); }
  bool given_up() const override { return state_->broken(); }
  std::string peer() const override { return "the other end"; }

 private:
  std::shared_ptr<PipeState> state_;
  int end_;
};

}  // namespace maki::wan::copy
