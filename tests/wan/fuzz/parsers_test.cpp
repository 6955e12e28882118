// A short walk of every parser through random and damaged bytes, the same in each run; `make fuzz` walks further.
#include "tests/wan/fuzz/parsers.hpp"

#include <gtest/gtest.h>

#include <random>

namespace maki::wan::fuzz {
namespace {

class Parsers : public testing::TestWithParam<Parser> {};

// One of many ways to damage a message.
Block damaged(const Block& good, std::mt19937_64& random) {
  Block bytes = good;
  for (auto changes = 1 + random() % 4; changes > 0 && !bytes.empty(); --changes) {
    std::byte& at = bytes[random() % bytes.size()];
    switch (random() % 3) {
      case 0: at = static_cast<std::byte>(random()); break;
      case 1: at ^= static_cast<std::byte>(1 << random() % 8); break;
      default: at = random() % 2 == 0 ? std::byte{0xff} : std::byte{0}; break;
    }
  }
  if (random() % 8 == 0) bytes.resize(random() % (bytes.size() + 20));
  return bytes;
}

Block noise(std::mt19937_64& random) {
  Block bytes(random() % 250);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

TEST_P(Parsers, TakeOnlyWhatIsRight) {
  const Parser& parser = GetParam();
  const auto samples = parser.samples();
  for (const Block& sample : samples) EXPECT_TRUE(parser.feed(sample));
  std::mt19937_64 random(20);
  int taken = 0;
  for (int round = 0; round < 100000 / 15; ++round) {
    Block bytes = round % 8 == 0 ? noise(random) : damaged(samples[random() % samples.size()], random);
    if (parser.sealed && round % 4 != 0) seal(bytes);
    taken += parser.feed(bytes) ? 1 : 0;
  }
  EXPECT_LT(taken, 100000 / 15);
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Parsers, testing::ValuesIn(parsers()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace maki::wan::fuzz
