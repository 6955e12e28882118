// What MPWide's calls do with channels: one buffer cut into parts, each part a message of its channel.
#pragma once

#include <span>
#include <vector>

#include "wan/net/mpw/link.hpp"

namespace maki::wan::mpw {

struct Part {
  char* data = nullptr;
  std::size_t size = 0;
};

// Parts that differ by one byte at most, the longer ones first. Throws Error for a negative size or no parts.
std::vector<Part> split(char* buffer, long long size, int parts);
// One part for each buffer.
std::vector<Part> parts_of(char** buffers, const long long* sizes, int count);

// Sends and receives that are on their way. Empty parts are not sent, and not waited for.
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

// Of sizes that only the senders know: each channel carries a size, then the data. `parts` are sent; what comes in is put
// into `buffer`, channel after channel. Throws Error where it does not fit. How much came.
std::size_t exchange_unknown(const std::vector<Lane>& to, const std::vector<Part>& parts, const std::vector<Lane>& from,
                             Part buffer);

// Returns when the peer has called it for this channel too.
void barrier(const Lane& lane);

}  // namespace maki::wan::mpw
