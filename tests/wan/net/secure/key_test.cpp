// Key files: private, exact, never overwritten.
#include "wan/net/secure/key.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/wan/temporary_folder.hpp"
#include "wan/net/error.hpp"

namespace maki::wan {
namespace {

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
    try {
      read_key(path);
    } catch (const SecurityError& e) {
      return e.what();
    }
    return {};
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
  for (const int mode : {0640, 0620, 0604, 0602, 0610, 0601, 0644, 0777}) {
    const std::string message = refusal(put("maki-key 1\n" + id_ + key_, mode));
    EXPECT_NE(message.find("chmod 600 " + path()), std::string::npos) << message;
  }
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
