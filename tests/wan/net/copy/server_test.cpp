// Who may have what of a server, and how much of it.
#include "wan/net/copy/server.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "tests/wan/net/copy/hostile_fixture.hpp"
#include "wan/net/copy/client.hpp"

namespace maki::wan::copy {
namespace {

class CopyServer : public ::testing::Test {
 protected:
  CopyServer() {
    for (const char* name : {"a", "b", "c"}) {
      fs::create_directories(here_ / name);
      security_.key_files.push_back(test::new_key(keys_, name).key_files[0]);
    }
    options_.shares[id_of("a")] = {here_ / "a", false, "key a.key"};
    options_.shares[id_of("b")] = {here_ / "b", true, "key b.key"};
    options_.log = [this](const std::string& line) { log_.add(line); };
    write_file(here_ / "local", "contents");
  }
  std::string id_of(const char* name) const { return read_key(keys_ / name).id; }
  void start() { server_.emplace(options_, security_, test::streams(2)); }
  Path path(const char* key) const {
    Security security;
    security.key_files = {keys_ / key};
    return Path::connect(server_->address(), security, test::streams(2), {std::string("from ") + key});
  }
  void push(const char* key, const std::string& to) const {
    Client client(path(key));
    EXPECT_TRUE(client.push({(here_ / "local").string()}, to).complete());
  }
  // A client that begins a copy and says no more.
  std::unique_ptr<PathChannel> begin(const char* key) const {
    auto channel = std::make_unique<PathChannel>(path(key));
    Order order;
    order.action = Order::Action::kPush;
    channel->send(kControlTag, encode(order));
    EXPECT_TRUE(decode_reply(channel->receive(kControlTag).view()).agreed);
    return channel;
  }

  test::TemporaryFolder keys_;
  Security security_;
  Scratch here_;
  ServerOptions options_;
  test::Lines log_;
  std::optional<RunningServer> server_;
};

TEST_F(CopyServer, EachKeyHasItsOwnFolder) {
  start();
  push("a", "x/new");
  EXPECT_EQ(read_file(here_ / "a/x/new"), "contents");
  write_file(here_ / "b/only", "B");
  Client reader(path("b"));
  EXPECT_THROW(reader.push({(here_ / "local").string()}, "new"), Error);
  EXPECT_THROW(reader.pull({"x/new"}, here_ / "got/"), Error);  // of a's folder
  EXPECT_TRUE(reader.pull({"only"}, here_ / "got/").complete());
  EXPECT_EQ(read_file(here_ / "got/only"), "B");
  EXPECT_FALSE(fs::exists(here_ / "b/new"));
  EXPECT_THROW(push("c", "new"), Error);  // may call, and has no folder
  server_.reset();                        // all sessions are over
  EXPECT_TRUE(log_.has("key a.key", "brings into 'x/new'"));
  EXPECT_TRUE(log_.has("key a.key", "1 file (8 bytes)"));
  EXPECT_TRUE(log_.has("key b.key", "fetches 'only'"));
  EXPECT_TRUE(log_.has(id_of("c"), "is refused"));
}

TEST_F(CopyServer, OneKeyDoesNotLockOutOthers) {
  options_.limits.of_each = 3;
  options_.shares[id_of("b")].read_only = false;
  start();
  std::vector<std::unique_ptr<PathChannel>> held;
  for (int i = 0; i < 3; ++i) held.push_back(begin("a"));
  EXPECT_THROW(push("a", "x"), PathError);  // for now: another time it may
  push("b", "x");
  held.pop_back();
  for (int i = 0;; ++i) try {
      push("a", "x");
      break;
    } catch (const PathError&) {
      ASSERT_LT(i, 600);
      test::pause(0.1);
    }
}

TEST_F(CopyServer, WhoHasFewTakesAPlaceOfWhoHasMost) {
  options_.limits.all = 4;
  options_.shares[id_of("b")].read_only = false;
  start();
  std::vector<std::unique_ptr<PathChannel>> held;
  for (int i = 0; i < 4; ++i) held.push_back(begin("a"));
  held.push_back(begin("b"));
  EXPECT_THROW(push("a", "x"), PathError);
}

TEST_F(CopyServer, StopsAtOnceWhoeverIsThere) {
  start();
  std::vector<std::unique_ptr<PathChannel>> held;
  for (int i = 0; i < 8; ++i) held.push_back(begin("a"));
  const auto start = std::chrono::steady_clock::now();
  server_.reset();
  // One after another they would take two seconds each.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(14));
}

TEST(CopyPeerLog, CountsWhatItLeavesOut) {
  std::vector<std::string> lines;
  PeerLog log([&](const std::string& line) { lines.push_back(line); });
  for (int i = 0; i < 1000; ++i) log.mention("a", std::string(5000, 'x') + "\n");
  EXPECT_EQ(lines.size(), static_cast<std::size_t>(PeerLog::kAMinute));
  for (const std::string& line : lines) EXPECT_LE(line.size(), 1000u);
  log.mention("b", "b\x1b");
  EXPECT_EQ(lines.back(), "b\\x1b");
}

TEST(CopyPeerLog, OrdersWaitForTheirTurnAfterABurst) {
  PeerLog log({});
  double wait = 0;
  for (int i = 0; i < PeerLog::kBurst; ++i) wait = log.turn("a");
  EXPECT_LE(wait, 0.3);
  for (int i = 0; i < 40 * PeerLog::kASecond; ++i) wait = log.turn("a");
  EXPECT_GT(wait, 5);
  EXPECT_LE(log.turn("b"), 0.3);
}

}  // namespace
}  // namespace maki::wan::copy
