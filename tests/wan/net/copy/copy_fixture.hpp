// What the tests of copying share: folders that go away, trees of files, servers, a connection that is cut, and a peer
// with a key that says what it likes.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "tests/places.hpp"
#include "tests/wan/helpers.hpp"
#include "wan/net/copy/message.hpp"
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

inline unsigned mode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
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

// Breaks as a lost path would once it has sent `budget` bytes of file contents, all of which arrive.
class CutChannel : public MessageChannel {
 public:
  CutChannel(Path path, std::uint64_t budget) : MessageChannel(std::move(path)), budget_(budget) {}
  void send(Tag tag, Bytes message) override {
    if (tag == kDataTag && message.size > budget_) {
      flush();
      give_up();
    }
    if (tag == kDataTag) budget_ -= std::min<std::uint64_t>(budget_, message.size);
    MessageChannel::send(tag, std::move(message));
  }

 private:
  std::uint64_t budget_;
};

class HostilePeer {
 public:
  HostilePeer() : pair_(test::streams(2)) {
    ours_ = std::make_unique<MessageChannel>(std::move(pair_.here));
    theirs_ = std::make_unique<MessageChannel>(std::move(pair_.there));
  }
  MessageChannel& ours() { return *ours_; }
  std::unique_ptr<MessageChannel> take_ours() { return std::move(ours_); }
  MessageChannel& theirs() { return *theirs_; }
  void leave() { theirs_.reset(); }

  template <class Message>
  void say(Tag tag, const Message& message) {
    theirs_->send(tag, encode(message));
  }
  // Records, all in one message.
  template <class Write>
  void send_records(Write write) {
    RecordWriter writer(kMaxBatch, [this](Bytes message) { theirs_->send(kDataTag, std::move(message)); });
    write(writer);
    writer.flush();
  }

 private:
  test::Pair pair_;
  std::unique_ptr<MessageChannel> ours_, theirs_;
};

inline void put_file(RecordWriter& writer, std::uint64_t index, const std::string& text, std::uint32_t mode = 0644) {
  writer.put(Begin{.index = index, .size = text.size(), .mtime = 1, .mode = mode});
  std::memcpy(writer.room(text.size()).data(), text.data(), text.size());
  writer.filled(text.size());
  Digester digester;
  digester.add(std::as_bytes(std::span(text)));
  writer.put(End{digester.checksum()});
}

inline Entry file_entry(const std::string& path, std::uint64_t size, std::uint32_t mode = 0644) {
  return {.kind = Kind::kFile, .path = path, .size = size, .mtime = 1, .mode = mode};
}

inline bool has_control_characters(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

}  // namespace maki::wan::copy
