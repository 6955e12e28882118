// A short walk of every parser through random and damaged bytes, the same in each run; `make fuzz` walks further.
#include "tests/wan/fuzz/parsers.hpp"

#include <gtest/gtest.h>

#include "tests/wan/fuzz/rounds.hpp"

namespace maki::wan::fuzz {
namespace {

class Parsers : public testing::TestWithParam<Parser> {};

// Half of it begins as `good` does.
Block noise(const Block& good, Random& random) {
  Block bytes(random() % 250);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  if (!bytes.empty() && random() % 2 == 0) bytes[0] = good[0];
  return bytes;
}

// What some parser takes.
std::vector<Block> all_samples() {
  std::vector<Block> all;
  for (const Parser& parser : parsers())
    for (const Block& sample : parser.samples()) all.push_back(sample);
  return all;
}

TEST_P(Parsers, TakeOnlyWhatIsRight) {
  const auto rounds = static_cast<int>(few_or_many(20'000, 1'000'000));
  const Parser& parser = GetParam();
  const auto samples = parser.samples(), others = all_samples();
  for (const Block& sample : samples) EXPECT_TRUE(parser.feed(sample));
  for (const Block& other : others) parser.feed(other);
  Random random(20);
  int taken = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto& good = round % 8 == 4 ? others[random() % others.size()] : samples[random() % samples.size()];
    Block bytes = round % 8 == 0 ? noise(good, random) : good;
    if (round % 8 != 0) damage(bytes, random);
    if (parser.sealed && round % 4 != 0) seal(bytes);
    taken += parser.feed(bytes) ? 1 : 0;
  }
  EXPECT_LT(taken, rounds);
}

const auto name = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Fuzz, Parsers, testing::ValuesIn(parsers()), name);
INSTANTIATE_TEST_SUITE_P(Full, Parsers, testing::ValuesIn(parsers()), name);

}  // namespace
}  // namespace maki::wan::fuzz
