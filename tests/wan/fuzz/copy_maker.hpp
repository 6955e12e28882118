// Messages of a copy as a peer with a key might send them: each well formed (most of them), in any order, with any numbers.
#pragma once

#include "tests/wan/fuzz/rounds.hpp"
#include "wan/net/copy/message.hpp"

namespace maki::wan::fuzz {

class CopyMaker {
 public:
  explicit CopyMaker(Random& random) : random_(random) {}
  struct Made {
    Tag tag;
    std::vector<std::byte> bytes;
  };
  Made next();  // of either side
  Made of(Tag tag);
  Made order(copy::Order::Action action);
  Made agreement();

 private:
  std::string path();
  std::uint64_t number();
  copy::Piece piece();
  copy::Answers answers();
  copy::Results results();
  std::vector<std::byte> records();
  void put_record(copy::RecordWriter& writer);

  Random& random_;
  std::uint64_t listed_ = 0, answered_ = 0, file_ = 0;  // what an honest peer would be at
};

}  // namespace maki::wan::fuzz
