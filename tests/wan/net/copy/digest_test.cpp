// Checksums of what is there: however it comes in pieces, whether its zeros are stored, and only as long as they are
// asked for.
#include "wan/net/copy/digest.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "tests/wan/net/copy/copy_fixture.hpp"
#include "wan/net/copy/root.hpp"

namespace maki::wan::copy {
namespace {

// Data and zeros of all lengths around those of the digester's blocks.
std::string patchy(unsigned seed) {
  std::mt19937 random(seed);
  std::string text;
  for (int i = 0; i < 30; ++i) {
    const std::size_t length = random() % 3 == 0 ? (random() % 4) * 65536 + random() % 3 : random() % 100000;
    text += i % 2 == 0 ? random_text(length, random()) : std::string(length, '\0');
  }
  return text;
}

Checksum at_once(const std::string& text) {
  Digester digester;
  digester.add(std::as_bytes(std::span(text)));
  return digester.checksum();
}

// As a receiver gets it: pieces of any size, some of the zeros as holes.
Checksum in_pieces(const std::string& text, unsigned seed) {
  std::mt19937 random(seed);
  Digester digester;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = std::min<std::size_t>(text.size() - at, random() % 150000);
    const std::string piece = text.substr(at, length);
    if (piece.find_first_not_of('\0') == std::string::npos)
      digester.add_zeros(length);
    else
      digester.add(std::as_bytes(std::span(piece)));
    at += length;
  }
  return digester.checksum();
}

TEST(CopyDigest, PiecesAndHolesDoNotMatter) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const std::string text = patchy(seed);
    EXPECT_EQ(at_once(text), in_pieces(text, seed)) << seed;
  }
}

TEST(CopyDigest, EveryChangeMatters) {
  const std::string text = patchy(3);
  const Checksum right = at_once(text);
  EXPECT_NE(at_once(text + '\0'), right);
  EXPECT_NE(at_once(text.substr(0, text.size() - 1)), right);
  EXPECT_NE(at_once(std::string(65536, '\0') + text), right);
  std::mt19937 random(4);
  for (int i = 0; i < 50; ++i) {
    std::string other = text;
    other[random() % other.size()] ^= 1;
    EXPECT_NE(at_once(other), right);
  }
  EXPECT_NE(at_once(std::string(65536, '\0')), at_once(std::string(131072, '\0')));
}

TEST(CopyDigest, AHoleOfAnyLengthTakesNoTime) {
  Digester one, two;
  one.add_zeros(std::uint64_t{1} << 62);
  two.add_zeros((std::uint64_t{1} << 62) - 5);
  EXPECT_NE(one.checksum(), two.checksum());
  two.add_zeros(5);
  EXPECT_EQ(one.checksum(), two.checksum());
}

TEST(CopyStoredBytes, HolesOfAFileArePassedOver) {
  Scratch here;
  const std::string text = random_text(200000, 1);
  const Descriptor file(open((here / "f").c_str(), O_RDWR | O_CREAT, 0600));
  constexpr off_t kFar = off_t{1} << 40;
  ASSERT_EQ(pwrite(file.descriptor(), text.data(), text.size(), kFar), static_cast<ssize_t>(text.size()));
  Digester expected, found;
  expected.add_zeros(kFar);
  expected.add(std::as_bytes(std::span(text)));
  EXPECT_EQ(digest_file(file.descriptor(), kFar + text.size(), found, [] {}), kFar + text.size());
  EXPECT_EQ(found.checksum(), expected.checksum());
  Digester shorter;
  EXPECT_EQ(digest_file(file.descriptor(), std::uint64_t{1} << 62, shorter, [] {}), kFar + text.size());
  EXPECT_EQ(errno, 0);
}

TEST(CopyStoredBytes, ReadingEndsWhenAsked) {
  Scratch here;
  write_file(here / "f", random_text(8 << 20, 2));
  const Descriptor file(open((here / "f").c_str(), O_RDONLY));
  int asked = 0;
  const Check check = [&] {
    if (++asked == 3) throw PathError("it ended");
  };
  Digester digester;
  EXPECT_THROW(digest_file(file.descriptor(), 8 << 20, digester, check), PathError);
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace maki::wan::copy
