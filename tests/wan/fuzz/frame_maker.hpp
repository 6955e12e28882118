// Frames as a peer with a key might send them: most in order, some not, a few that cannot be.
#pragma once

#include <map>
#include <vector>

#include "tests/wan/fuzz/rounds.hpp"
#include "wan/net/path.hpp"
#include "wan/net/path/wire.hpp"

namespace maki::wan::fuzz {

inline constexpr std::byte kFilling{0xab};  // every byte of every message: another one has come from somewhere else
inline constexpr std::uint64_t kMessageLimit = 1 << 20;
inline constexpr Tag kTags = 4;

class FrameMaker {
 public:
  explicit FrameMaker(Random& random) : random_(random) {}
  struct Made {
    Frame frame;
    std::vector<std::byte> payload;
    bool possible = true;  // encode() takes it
  };
  Made next();
  void new_session();

 private:
  struct Message {
    Tag tag = 0;
    std::uint64_t index = 0, total = 0, sent = 0;
  };
  Message& some_message();
  Frame chunk();
  Frame other_place();
  Frame again();
  Frame control();
  Frame wild();
  std::vector<std::byte> payload_of(const Frame& frame);

  Random& random_;
  std::uint64_t sequence_ = 0;
  std::map<Tag, std::uint64_t> next_index_;
  std::vector<Message> messages_;
  std::vector<Frame> sent_;
};

}  // namespace maki::wan::fuzz
