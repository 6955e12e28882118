// One path to another program, and the channels that share it.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "wan/net/mpw/shared_listener.hpp"
#include "wan/net/path.hpp"

namespace maki::wan::mpw {

class Link {
 public:
  Link(Path path, std::shared_ptr<SharedListener> listener, std::string name, int channels);
  const std::string& name() const { return name_; }  // of the peer, for messages

  // Any thread. Throw Error once it is closed.
  Request start_send(Tag tag, std::span<const std::byte> message);
  Request start_receive(Tag tag, std::span<std::byte> buffer);
  Request start_receive_any(Tag tag, std::size_t limit);
  void change(const PathSettings& settings);
  PathSettings settings();
  PathStatus status();
  // Until close(): for calls that take a Path.
  Path& path() { return path_; }

  bool live();   // neither closed nor lost
  void close();  // what was sent is acknowledged first
  void leave();  // one channel fewer; close() with the last
  void come_back();
  int channels() const { return channels_; }

 private:
  template <class Use>
  auto with_path(Use use);

  std::mutex mutex_;
  Path path_;
  std::shared_ptr<SharedListener> shared_listener_;
  const std::string name_;
  const int channels_;
  int open_channels_;
};

// A channel as calls use it: a tag of a path.
struct Lane {
  std::shared_ptr<Link> link;
  Tag tag = 0;
  int channel = 0;
};

}  // namespace maki::wan::mpw
