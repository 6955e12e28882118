// Sizes, rates and times as people write them.
#include "wan/net/quantity.hpp"

#include <gtest/gtest.h>

#include "wan/net/error.hpp"

namespace maki::wan {
namespace {

TEST(Quantity, SizesRatesAndTimesCarryUnits) {
  EXPECT_EQ(parse_size("4 MB"), 4'000'000u);
  EXPECT_EQ(parse_size("64 KiB"), 65536u);
  EXPECT_EQ(parse_size("1.5 kB"), 1500u);
  EXPECT_EQ(parse_size("2GB"), 2'000'000'000u);
  EXPECT_EQ(parse_size("700"), 700u);
  EXPECT_DOUBLE_EQ(parse_rate("800 Mbit/s"), 1e8);
  EXPECT_DOUBLE_EQ(parse_rate("100 MB/s"), 1e8);
  EXPECT_DOUBLE_EQ(parse_rate("10 Gbit/s"), 1.25e9);
  EXPECT_DOUBLE_EQ(parse_rate("0"), 0);
  EXPECT_DOUBLE_EQ(parse_seconds("10 min"), 600);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5"), 1.5);
  EXPECT_DOUBLE_EQ(parse_seconds("270 ms"), 0.27);
  EXPECT_EQ(parse_integer("256", 1, 256), 256);
  for (const char* wrong : {"4 Mb", "MB", "-1 MB", "0.5 B", "1 MB/s", "1e30 GB", "nan"})
    EXPECT_THROW(parse_size(wrong), Error) << wrong;
  for (const char* wrong : {"0", "257", "7 streams", ""}) EXPECT_THROW(parse_integer(wrong, 1, 256), Error) << wrong;
  for (const char* wrong : {"100", "100 MB", "fast", "-1 MB/s"}) EXPECT_THROW(parse_rate(wrong), Error) << wrong;
  try {
    parse_rate("100");
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    for (const char* word : {"'100'", "no unit", "Mbit/s", "MB/s"})
      EXPECT_NE(text.find(word), std::string::npos) << text;
  }
}

TEST(Quantity, TextsOfNumbersAreReadAsTheSameNumbers) {
  for (const std::size_t bytes : {0ul, 1ul, 999ul, 65536ul, 65537ul, 4'000'000ul, 1ul << 28, 1ul << 40})
    EXPECT_EQ(parse_size(size_text(bytes)), bytes) << size_text(bytes);
  for (const double rate : {0.0, 1.0, 1e8, 123456789.0, 1e8 / 3, 9.7e7})
    EXPECT_EQ(parse_rate(rate_text(rate)), rate) << rate_text(rate);
  EXPECT_EQ(size_text(65536), "64 KiB");
  EXPECT_EQ(size_text(4'000'000), "4 MB");
  EXPECT_EQ(rate_text(1e8), "800 Mbit/s");
}

TEST(Quantity, AmountsAreRounded) {
  EXPECT_EQ(amount(999), "999 bytes");
  EXPECT_EQ(amount(1500), "1.5 kB");
  EXPECT_EQ(amount(2'100'000'000), "2.10 GB");
  EXPECT_EQ(amount(1'234'567'890'123), "1.235 TB");
}

}  // namespace
}  // namespace maki::wan
