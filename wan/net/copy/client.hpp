// Copies to and from a served folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "wan/net/copy/message_channel.hpp"
#include "wan/net/copy/report.hpp"
#include "wan/net/copy/sender.hpp"

namespace maki::wan::copy {

struct CopyOptions {
  bool checksum = false;  // compare all files by their contents, whatever their size and time
  bool perms = false;     // pull: take execute bits, and writing by others, as the server says
  OnNote on_note;         // called as things happen, from any thread
  Progress* progress = nullptr;
  std::size_t batch = kMaxBatch;  // bytes of a message, at most so many
};

// One copy after another over the same connection. Throw PathError where it is lost, or the server has no time for us
// (the same call over a new one continues), Error where the server refuses; what is wrong with single files is in the
// report.
class Client {
 public:
  explicit Client(std::unique_ptr<MessageChannel> channel) : channel_(std::move(channel)) {}
  explicit Client(Path path) : Client(std::make_unique<PathChannel>(std::move(path))) {}
  ~Client();

  // A folder goes into `destination` with its name, or without where its Source has none; a single file becomes
  // `destination`, unless that ends with a slash or is a folder.
  CopyReport push(std::vector<Source> sources, const std::string& destination, const CopyOptions& options = {});
  CopyReport push(const std::vector<std::string>& paths, const std::string& destination,
                  const CopyOptions& options = {});
  // From paths below the server's root to one of this machine, by the same rules. Nothing comes but files of these
  // names, and what is below them; of a path with a slash at its end, whatever the server says that is in it.
  CopyReport pull(const std::vector<std::string>& paths, const std::string& destination,
                  const CopyOptions& options = {});
  MessageChannel& channel() { return *channel_; }

 private:
  std::unique_ptr<MessageChannel> channel_;
};

}  // namespace maki::wan::copy
