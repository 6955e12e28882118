// What a peer says, as a terminal may see it.
#include "wan/net/error.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/wan/helpers.hpp"

namespace maki::wan {
namespace {

TEST(Printable, LeavesTextAlone) {
  for (const char* text : {"", "amsterdam at 1.2.3.4:6000", "Zürich, 東京, 🚀", "a \\x1b that was escaped"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesWhatATerminalObeys) {
  EXPECT_EQ(printable("\x1b[2Jgone\r\n"), "\\x1b[2Jgone\\x0d\\x0a");
  EXPECT_EQ(printable(std::string_view("a\0b\x7f", 4)), "a\\x00b\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");  // CSI as one character
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "txt"),
            "\\xe2\\x80\\xaetxt");  // right to left from here
}

TEST(Printable, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m");                           // CSI of 8 bits
  EXPECT_EQ(printable("\xc3"), "\\xc3");           // cut off
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");  // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
}

TEST(Printable, HasALength) {
  EXPECT_EQ(printable("12345", 5), "12345");
  EXPECT_EQ(printable("123456", 5), "12...");
  EXPECT_EQ(printable("aüüü", 6), "aü...");  // no half characters
  EXPECT_EQ(printable("ab\x1b\x1b", 7), "ab...");
  EXPECT_EQ(printable("123456", 2), "..");
  EXPECT_EQ(printable(std::string(1000, 'x')).size(), 500u);
}

TEST(Printable, IsTheSameTheSecondTime) {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string text(random() % 40, '\0');
    for (char& c : text) c = static_cast<char>(random());
    const std::string once = printable(text);
    EXPECT_EQ(printable(once), once);
    for (const char c : once) EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7f);
  }
}

TEST(Log, QuotesPeersSafelyAndOnce) {
  const test::Log lines;
  log(LogLevel::kWarning, "peer \x1b[2J says\nhello");
  for (int i = 0; i < 3; ++i) log_once(LogLevel::kInfo, "said once by this test");
  EXPECT_EQ(lines.all(), (std::vector<std::string>{"peer \\x1b[2J says\\x0ahello", "said once by this test"}));
}

}  // namespace
}  // namespace maki::wan
