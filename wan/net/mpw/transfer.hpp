// Messages over channels: the paths that channels share, and buffers cut into parts.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "wan/net/mpw/meeting.hpp"
#include "wan/net/path.hpp"

namespace maki::wan::mpw {

// One path to another program, and the channels that share it. Any thread.
class Link {
 public:
  Link(Path path, std::shared_ptr<SharedListener> listener, int channels)
      : shared_listener_(std::move(listener)), path_(std::make_shared<Path>(std::move(path))),
        open_channels_(channels) {}

  // Closed with the last channel, and gone with what it held when its last call is over. Throws PathError then.
  std::shared_ptr<Path> path() {
    const std::lock_guard lock(mutex_);
    if (!path_) throw PathError("The path is closed", "its channels were closed here");
    return path_;
  }
  bool live();   // neither closed nor lost
  void leave();  // one channel fewer; closes with the last, once what was sent is acknowledged
  void come_back() { ++open_channels_; }

 private:
  std::shared_ptr<SharedListener> shared_listener_;
  std::mutex mutex_;  // of path_
  std::shared_ptr<Path> path_;
  std::atomic<int> open_channels_;
};

// A channel as calls use it: a tag of a path.
struct Lane {
  std::shared_ptr<Link> link;
  Tag tag = 0;
  int channel = 0;
};

// What MPWide's calls do with channels: one buffer cut into parts, each part a message of its channel.
struct Part {
  char* data = nullptr;
  std::size_t size = 0;
};

// Parts that differ by one byte at most, the longer ones first. Throws Error for a negative size or no parts.
std::vector<Part> split(char* buffer, long long size, int parts);
// One part for each buffer.
std::vector<Part> parts_of(char** buffers, const long long* sizes, int count);

// Sends and receives that are on their way, of as many lanes as parts. Empty parts are not sent, and not waited for.
class Exchange {
 public:
  void send(const std::vector<Lane>& lanes, const std::vector<Part>& parts);
  // Each takes one message, which has to be as long as the part.
  void receive(const std::vector<Lane>& lanes, const std::vector<Part>& parts);
  // Throw as soon as one has failed: Error where a message has another size, PathError.
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

// Of sizes that only the senders know: each channel carries a size, then the data. `parts` are sent; what comes in is
// put into `buffer`, channel after channel. Throws Error where it does not fit. How much came.
std::size_t exchange_unknown(const std::vector<Lane>& to, const std::vector<Part>& parts, const std::vector<Lane>& from,
                             Part buffer);

// Returns when the peer has called it for this channel too.
void barrier(const Lane& lane);

// Passes every message of a lane on to its partner, both ways, until a path ends (orderly: returns; else throws
// PathError). Messages keep their order; at most `limit` bytes each, and passed on when they are there as a whole: where
// bytes should flow through, there is relay/relay.hpp.
void relay(const std::vector<Lane>& one, const std::vector<Lane>& other, std::size_t limit);

}  // namespace maki::wan::mpw
