// Messages over channels: the paths shared by channels, and buffers cut into parts.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "wan/net/mpw/meeting.hpp"
#include "wan/net/path.hpp"

namespace maki::wan::mpw {

// One path to another program, and the channels that share it. Thread-safe.
class Link {
 public:
  Link(Path path, std::shared_ptr<SharedListener> listener, int channels)
      : shared_listener_(std::move(listener)), path_(std::make_shared<Path>(std::move(path))),
        open_channels_(channels) {}

  // The path is closed with the last channel, and freed after its last call. Throws PathError then.
  std::shared_ptr<Path> path() {
    const std::lock_guard lock(mutex_);
    if (!path_) throw PathError("The path is closed", "its channels were closed here");
    return path_;
  }
  bool live();   // neither closed nor lost
  void leave();  // one channel fewer; the last one closes the path, once all is acknowledged
  void come_back() { ++open_channels_; }

 private:
  std::shared_ptr<SharedListener> shared_listener_;
  std::mutex mutex_;  // guards path_
  std::shared_ptr<Path> path_;
  std::atomic<int> open_channels_;
};

// A channel as calls use it: a tag of a path.
struct Lane {
  std::shared_ptr<Link> link;
  Tag tag = 0;
  int channel = 0;
};

// Data of MPWide's calls: one buffer cut into parts, each part a message of its channel.
struct Part {
  char* data = nullptr;
  std::size_t size = 0;
};

// Parts that differ by at most one byte, longer ones first. Throws Error for a negative size or no parts.
std::vector<Part> split(char* buffer, long long size, int parts);
// One part for each buffer.
std::vector<Part> parts_of(char** buffers, const long long* sizes, int count);

// Sends and receives in progress, one lane a part. Empty parts are neither sent nor waited for.
class Exchange {
 public:
  void send(const std::vector<Lane>& lanes, const std::vector<Part>& parts);
  // Each receives one message, which must be as long as the part.
  void receive(const std::vector<Lane>& lanes, const std::vector<Part>& parts);
  // Throws as soon as one has failed: Error where a message has another size, PathError.
  void wait();
  bool test();

 private:
  struct One {
    Request request;
    std::size_t expected = 0;
    int channel = 0;
    bool receives = false;
  };
  static void check(One& one);
  std::vector<One> all_;
};

// For sizes that only the senders know: each channel carries a size, then the data. Sends `parts`, and puts the
// received data into `buffer`, channel after channel. Throws Error if they do not fit. Returns the bytes received.
std::size_t exchange_unknown(const std::vector<Lane>& to, const std::vector<Part>& parts, const std::vector<Lane>& from,
                             Part buffer);

// Returns when the peer has called it for this channel too.
void barrier(const Lane& lane);

// Passes every message of a lane on to its partner, both ways, until a path ends (orderly: returns; else throws
// PathError). Messages keep their order, have at most `limit` bytes each, and are passed on when complete. For a flow
// of bytes there is relay/relay.hpp.
void relay(const std::vector<Lane>& one, const std::vector<Lane>& other, std::size_t limit);

}  // namespace maki::wan::mpw
