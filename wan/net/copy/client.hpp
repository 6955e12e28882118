// Copies to and from a served folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "wan/net/copy/message_channel.hpp"
#include "wan/net/copy/sender.hpp"

namespace maki::wan::copy {

struct CopyOptions {
  bool checksum = false;  // compare all files by their contents, whatever their size and time
  bool perms = false;     // pull: take execute bits, and write permission for others, from the server
  OnNote on_note;         // called for each event, from any thread
  Progress* progress = nullptr;
  std::size_t batch = kMaxBatch;  // largest message, bytes
};

// Successive copies over one connection. Throw PathError where it is lost, or the server is too busy (the same call
// over a new connection continues), Error where the server refuses. Problems of single files are notes.
class Client {
 public:
  explicit Client(std::unique_ptr<MessageChannel> channel) : channel_(std::move(channel)) {}
  explicit Client(Path path) : Client(std::make_unique<MessageChannel>(std::move(path))) {}
  ~Client();

  // A folder is copied into `destination` under its name, or without one if its Source has none. A single file becomes
  // `destination`, unless that ends with a slash or is a folder.
  Counts push(std::vector<Source> sources, const std::string& destination, const CopyOptions& options = {});
  Counts push(const std::vector<std::string>& paths, const std::string& destination, const CopyOptions& options = {});
  // From paths below the server's root to a local one, by the same rules. Accepts only files with these names, and what
  // is below them; for a path with a trailing slash, whatever the server lists in it.
  Counts pull(const std::vector<std::string>& paths, const std::string& destination, const CopyOptions& options = {});
  MessageChannel& channel() { return *channel_; }

 private:
  std::unique_ptr<MessageChannel> channel_;
};

}  // namespace maki::wan::copy
