// Channels carry bytes, plain and encrypted, through sockets of any size, and end as they should. Key files: private,
// exact, never overwritten.
#include "wan/net/secure/channel.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/secure/channel_pair.hpp"
#include "wan/net/error.hpp"
#include "wan/net/secure/key.hpp"
#include "wan/net/secure/tls.hpp"

namespace maki::wan {
namespace {

using test::carry, test::pattern;

struct Way {
  bool encrypted;
  std::size_t buffer;
  std::uint64_t rekey;
};

class Channels : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    context_ = SecurityContext::make(GetParam().encrypted ? test::new_key(folder_) : test::insecure());
    auto [a, b] = test::socket_pair(GetParam().buffer);
    one_ = make(std::move(a), Side::kConnecting);
    other_ = make(std::move(b), Side::kListening);
    const auto [first, second] = test::shake_hands(*one_, *other_);
    ASSERT_TRUE(first.done) << first.error;
    ASSERT_TRUE(second.done) << second.error;
  }

  std::unique_ptr<Channel> make(Socket socket, Side side) const {
    if (!GetParam().encrypted) return make_channel(context_, std::move(socket), side);
    return make_tls_channel(std::static_pointer_cast<const TlsContext>(context_), std::move(socket), side, "",
                            GetParam().rekey);
  }

  test::TemporaryFolder folder_;
  test::Log log_;
  std::shared_ptr<const SecurityContext> context_;
  std::unique_ptr<Channel> one_, other_;
};

TEST_P(Channels, CarryBytesOfAllSizes) {
  std::mt19937 random(5);
  const std::size_t most = GetParam().buffer > 0 ? 40000 : 1 << 20;  // small buffers take their time
  for (const std::size_t size : {0, 1, 63, 64, 1000, 16319, 16320, 16321, 16384, 32768, 65536, 200000, 1 << 20}) {
    for (const std::size_t head_size : {0, 1, 64, 40000}) {
      if (size + head_size == 0 || size > most) continue;
      const auto all = pattern(head_size + size, static_cast<unsigned>(random()));
      const std::span view(all);
      Channel& from = random() % 2 == 0 ? *one_ : *other_;
      Channel& to = &from == one_.get() ? *other_ : *one_;
      ASSERT_EQ(carry(from, to, view.first(head_size), view.subspan(head_size)), all) << head_size << " + " << size;
    }
  }
}

TEST_P(Channels, GiveBytesInSmallReads) {
  const auto all = pattern(50000, 1);
  ASSERT_EQ(one_->write({}, all).bytes > 0, true);
  std::vector<std::byte> got;
  std::byte few[7];
  int idle = 0;
  while (got.size() < 10000) {
    const IoResult result = other_->read(few);
    got.insert(got.end(), few, few + result.bytes);
    if (result.status == IoStatus::kWantRead) {
      EXPECT_FALSE(other_->buffered());
      one_->flush();
      idle = test::ready(other_->descriptor(), POLLIN, 10) ? 0 : idle + 1;
      ASSERT_LT(idle, 3000);
    }
  }
  EXPECT_TRUE(std::equal(got.begin(), got.end(), all.begin()));
}

// A full connection takes no more, and what the channel holds of it does not grow.
TEST_P(Channels, StopWhenThePeerDoesNotRead) {
  const auto block = pattern(1 << 20, 2);
  std::size_t taken = 0;
  IoResult result;
  do {
    result = one_->write({}, block);
    taken += result.bytes;
  } while (result.status == IoStatus::kDone && taken < (64u << 20));
  ASSERT_EQ(result.status, IoStatus::kWantWrite);
  const IoResult again = one_->write({}, block);
  EXPECT_EQ(again.status, IoStatus::kWantWrite);
  std::vector<std::byte> buffer(1 << 20);
  std::size_t come = 0;
  int idle = 0;
  taken += again.bytes;
  while (come < taken) {
    const IoResult read = other_->read(buffer);
    for (std::size_t i = 0; i < read.bytes; ++i) ASSERT_EQ(buffer[i], block[(come + i) % block.size()]);
    come += read.bytes;
    one_->flush();
    if (read.status != IoStatus::kWantRead) continue;
    idle = test::ready(other_->descriptor(), POLLIN, 10) ? 0 : idle + 1;
    ASSERT_LT(idle, 3000);
  }
  EXPECT_EQ(come, taken);
}

TEST_P(Channels, EndAfterTheLastByte) {
  const auto all = pattern(3000, 3);
  EXPECT_EQ(carry(*one_, *other_, {}, all), all);
  one_->finish_writing();
  EXPECT_EQ(test::read_some(*other_).error, "closed");
  // The other direction goes on.
  EXPECT_EQ(carry(*other_, *one_, all, {}), all);
}

TEST_P(Channels, SeeAPeerThatVanishes) {
  one_.reset();
  EXPECT_EQ(test::read_some(*other_).error, "closed");
  const auto all = pattern(3000, 3);
  const auto closed = [&] { return other_->write(all, all).status == IoStatus::kClosed; };  // and no signal comes
  EXPECT_TRUE(test::comes_true(closed));
}

TEST_P(Channels, SayWhoIsThere) {
  EXPECT_EQ(one_->encrypted(), GetParam().encrypted);
  EXPECT_EQ(one_->identity(), other_->identity());
  EXPECT_EQ(one_->identity().size(), GetParam().encrypted ? 16u : 0u);
  EXPECT_EQ(log_.has("insecure"), !GetParam().encrypted);
}

INSTANTIATE_TEST_SUITE_P(Ways, Channels,
                         testing::Values(Way{false, 0, 0}, Way{false, 4096, 0}, Way{true, 0, kRekeyBytes},
                                         Way{true, 4096, kRekeyBytes}, Way{true, 0, 100000}),
                         [](const auto& info) {
                           const Way& way = info.param;
                           return std::string(way.encrypted ? "Tls" : "Plain") +
                                  (way.buffer > 0 ? "SmallBuffers" : "") + (way.rekey == 100000 ? "FreshKeys" : "");
                         });

// A header of its own record would cost a quarter of the speed of small chunks.
TEST(TlsRecords, HeadAndBodyShareOne) {
  test::TemporaryFolder folder;
  const auto context = SecurityContext::make(test::new_key(folder, "a.key"));
  auto [a, b] = test::socket_pair();
  const auto one = make_channel(context, std::move(a), Side::kConnecting);
  const auto other = make_channel(context, std::move(b), Side::kListening);
  ASSERT_TRUE(test::shake_hands(*one, *other).second.done);
  // No tickets: what lies there next is what is written next.
  std::byte raw[1 << 16];
  EXPECT_EQ(::recv(one->descriptor(), raw, sizeof raw, MSG_PEEK), -1);
  const auto block = pattern(1064, 1);
  const std::span view(block);
  EXPECT_EQ(one->write(view.first(64), view.subspan(64)).bytes, block.size());
  ASSERT_TRUE(test::ready(other->descriptor(), POLLIN));
  EXPECT_EQ(::recv(other->descriptor(), raw, sizeof raw, MSG_PEEK), 1064 + 5 + 1 + 16);
  EXPECT_EQ(test::read_some(*other).bytes, block);
}

TEST(SecurityContext, TakesExactlyOneWay) {
  test::TemporaryFolder folder;
  const Security key = test::new_key(folder, "a.key");
  const auto refusal = [](const Security& security) {
    return test::error_of<SecurityError>([&] { SecurityContext::make(security); });
  };
  EXPECT_EQ(refusal(key), "");
  EXPECT_TRUE(test::says(refusal({}), "maki wan keygen"));
  EXPECT_NE(refusal({.key_files = key.key_files, .insecure = true}), "");
  Security both = key;
  both.certificate = both.private_key = both.authority = "x.pem";
  EXPECT_NE(refusal(both), "");
  EXPECT_TRUE(test::says(refusal({.certificate = "x.pem"}), "private_key"));
  EXPECT_TRUE(test::says(refusal(test::both_of(key, key)), "same id"));
  EXPECT_TRUE(test::says(refusal({.key_files = {folder / "none"}}), folder / "none"));
}

namespace fs = std::filesystem;

class KeyFile : public testing::Test {
 protected:
  std::string path(const std::string& name = "a.key") const { return folder_.path(name); }
  std::string put(const std::string& text, int mode = 0600) const {
    std::ofstream(path()) << text;
    ::chmod(path().c_str(), static_cast<mode_t>(mode));
    return path();
  }
  // The message of the refusal; empty when there was none.
  static std::string refusal(const std::string& path) {
    return test::error_of<SecurityError>([&] { read_key(path); });
  }

  test::TemporaryFolder folder_;
  const std::string id_ = "id = 0123456789abcdef\n";
  const std::string key_ = "key = " + std::string(64, 'a') + "\n";
};

TEST_F(KeyFile, ComesBackAsWritten) {
  const Key key = Key::make();
  write_key(key, path());
  struct stat info {};
  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const Key got = read_key(path());
  EXPECT_EQ(got.id, key.id);
  EXPECT_EQ(got.secret, key.secret);
  EXPECT_EQ(key.id.size(), 16u);
  const Key other = Key::make();
  EXPECT_NE(other.id, key.id);
  EXPECT_NE(other.secret, key.secret);
}

TEST_F(KeyFile, IsNeverOverwritten) {
  const Key key = Key::make();
  write_key(key, path());
  EXPECT_THROW(write_key(Key::make(), path()), Error);
  EXPECT_EQ(read_key(path()).secret, key.secret);
  ASSERT_EQ(::symlink(path("target").c_str(), path("link").c_str()), 0);
  EXPECT_THROW(write_key(key, path("link")), Error);
  EXPECT_FALSE(fs::exists(path("target")));
}

TEST_F(KeyFile, OfMode600IsTaken) {
  EXPECT_EQ(refusal(put("maki-key 1\n# mine\n\n" + id_ + "  " + key_)), "");
  EXPECT_EQ(refusal(put("maki-key 1\r\nkey=" + std::string(64, 'A') + "\r\nid=0123456789abcdef", 0400)), "");
}

TEST_F(KeyFile, ThatOthersMayUseIsRefused) {
  for (const int mode : {0640, 0620, 0604, 0602, 0610, 0601, 0644, 0777})
    EXPECT_TRUE(test::says(refusal(put("maki-key 1\n" + id_ + key_, mode)), "chmod 600 " + path()));
}

TEST_F(KeyFile, OfSomeoneElseIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  ASSERT_EQ(::chown(put("maki-key 1\n" + id_ + key_).c_str(), 12345, 12345), 0);
  EXPECT_NE(refusal(path()).find("12345"), std::string::npos);
  ASSERT_EQ(::symlink(path().c_str(), path("link").c_str()), 0);
  EXPECT_NE(refusal(path("link")).find("12345"), std::string::npos);
}

TEST_F(KeyFile, ThatIsNoKeyIsRefused) {
  EXPECT_NE(refusal(path("missing")).find("maki wan keygen"), std::string::npos);
  EXPECT_NE(refusal(folder_.path()), "");
  const std::string first = "maki-key 1\n";
  for (const std::string& text :
       {std::string{}, std::string("maki-key 2\n") + id_ + key_, id_ + key_, first, first + id_, first + key_,
        first + id_ + key_ + key_, first + id_ + id_ + key_, first + id_ + key_ + "note = 1\n",
        first + id_ + key_ + "nonsense\n", first + "id = 0123456789ABCDEF\n" + key_, first + "id = 0123\n" + key_,
        first + id_ + "key = " + std::string(63, 'a') + "\n", first + id_ + "key = " + std::string(65, 'a') + "\n",
        first + id_ + "key = " + std::string(63, 'a') + "g\n",
        first + id_ + "key = " + std::string(64, 'a') + std::string(1, '\0') + "\n",
        first + id_ + key_ + std::string(5000, '#')})
    EXPECT_NE(refusal(put(text)), "") << text;
  EXPECT_NE(refusal("/dev/null"), "");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_NE(refusal(path("pipe")).find("regular"), std::string::npos);
}

TEST_F(KeyFile, MessagesDoNotShowTheSecret) {
  const std::string secret = "deadbeef" + std::string(55, '7');
  EXPECT_EQ(refusal(put("maki-key 1\n" + id_ + "key = " + secret + "\n")).find("deadbeef"), std::string::npos);
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Hmac, OfRfc4231) {
  const Digest digest = hmac_sha256(bytes_of("Jefe"), bytes_of("what do ya want for nothing?"));
  EXPECT_EQ(static_cast<int>(digest[0]), 0x5b);
  EXPECT_EQ(static_cast<int>(digest[1]), 0xdc);
  EXPECT_EQ(static_cast<int>(digest[31]), 0x43);
}

TEST(Hmac, Comparison) {
  EXPECT_TRUE(same_in_constant_time(bytes_of("abc"), bytes_of("abc")));
  EXPECT_FALSE(same_in_constant_time(bytes_of("abc"), bytes_of("abd")));
  EXPECT_FALSE(same_in_constant_time(bytes_of("abc"), bytes_of("ab")));
}

}  // namespace
}  // namespace maki::wan
