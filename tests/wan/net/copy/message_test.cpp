// What is encoded is decoded; what is cut short is refused (tests/wan/fuzz has all other bytes). Checksums of what is
// there: however it comes in pieces, whether its zeros are stored, and only as long as they are asked for.
#include "wan/net/copy/message.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/wan/net/copy/copy_fixture.hpp"
#include "tests/wan/net/copy/samples.hpp"
#include "wan/net/copy/digest.hpp"

namespace maki::wan::copy {
namespace {

TEST(CopyMessage, EachComesBackAsItWas) {
  EXPECT_EQ(decode_order(encode(some_order()).view()), some_order());
  EXPECT_EQ(decode_piece(encode(some_piece()).view()), some_piece());
  for (const Reply& reply : {Reply{.word = Reply::Word::kAgreed, .sole_file = true},
                             Reply{.word = Reply::Word::kLater, .reason = "why"}, Reply{}})
    EXPECT_EQ(decode_reply(encode(reply).view()), reply);
  const Bytes answers = encode(some_answers()), results = encode(some_results());
  EXPECT_EQ(decode_answers(answers.view()), some_answers());
  EXPECT_EQ(decode_results(results.view()), some_results());
  EXPECT_FALSE(is_results(answers.view()));
  EXPECT_TRUE(is_results(results.view()));
}

TEST(CopyMessage, OtherVersionsAndLongTexts) {
  Order newer = some_order();
  newer.version = kVersion + 1;
  EXPECT_EQ(decode_order(encode(newer).view()).version, kVersion + 1);
  const Results results{.failures = {{9, std::string(10000, 'x')}}, .done = false, .counts = {}};
  EXPECT_EQ(decode_results(encode(results).view()).failures[0].text.size(), kMaxText);
}

TEST(CopyMessage, Records) {
  const Bytes message = some_records();
  RecordReader reader(message.view());
  EXPECT_EQ(std::get<Begin>(*reader.next()).offset, 20u);
  EXPECT_EQ(std::get<Content>(*reader.next()).bytes.size(), 10u);
  EXPECT_EQ(std::get<Hole>(*reader.next()).length, 70u);
  EXPECT_EQ(std::get<End>(*reader.next()).checksum, some_checksum(2));
  EXPECT_EQ(std::get<Abandon>(*reader.next()).reason, "vanished");
  EXPECT_TRUE(std::get<Note>(*reader.next()).failed);
  EXPECT_TRUE(std::holds_alternative<Finish>(*reader.next()));
  EXPECT_FALSE(reader.next());
}

TEST(CopyMessage, ManySmallFilesShareAMessage) {
  std::vector<std::size_t> sizes;
  RecordWriter writer(64 << 10, [&](Bytes message) { sizes.push_back(message.size); });
  for (std::uint64_t i = 0; i < 1000; ++i) {
    writer.put(Begin{.index = i, .size = 500});
    writer.room(500);
    writer.filled(500);
    writer.put(End{});
  }
  writer.flush();
  EXPECT_LT(sizes.size(), 12u);
  for (const std::size_t size : sizes) EXPECT_LE(size, std::size_t{64} << 10);
}

TEST(CopyMessage, EveryCutIsRefused) {
  const auto refused = [](const Bytes& message, auto decode) {
    for (std::size_t size = 0; size < message.size; ++size)
      EXPECT_THROW(decode(message.view().first(size)), ProtocolError) << size;
    Bytes longer = make_bytes(message.size + 1);
    std::memcpy(longer.data.get(), message.data.get(), message.size);
    longer.data[message.size] = std::byte{0};
    EXPECT_THROW(decode(longer.view()), ProtocolError);
  };
  refused(encode(some_order()), decode_order);
  refused(encode(Reply{.word = Reply::Word::kLater, .reason = "no"}), decode_reply);
  refused(encode(some_piece()), decode_piece);
  refused(encode(some_answers()), decode_answers);
  refused(encode(some_results()), decode_results);
}

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
