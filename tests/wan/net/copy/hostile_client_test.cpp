// A server outlives clients that hold a key and say what they like.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "tests/wan/net/copy/hostile_fixture.hpp"

namespace maki::wan::copy {
namespace {

class HostileClient : public ::testing::Test {
 protected:
  HostileClient() {
    fs::create_directories(here_ / "served");
    options_.others = Share{(here_ / "served").string()};
    options_.log = [this](const std::string& line) { log_.add(line); };
  }
  ~HostileClient() override {
    peer_.theirs().give_up();
    if (serving_.valid()) serving_.wait();
  }
  void serve() {
    server_ = std::make_unique<Server>(options_);
    serving_ = std::async(std::launch::async, [this] { server_->serve(peer_.ours(), client_); });
  }
  void push() { ask({.action = Order::Action::kPush, .destination = "", .sources = {}}); }
  void pull(const std::string& what) { ask({.action = Order::Action::kPull, .destination = "", .sources = {what}}); }
  void ask(const Order& order) {
    if (!server_) serve();
    peer_.say(kControlTag, order);
    ASSERT_TRUE(decode_reply(peer_.theirs().receive(kControlTag).view()).agreed);
  }
  Results results() {
    for (;;) {
      const Bytes message = peer_.theirs().receive(kBackTag);
      if (is_results(message.view())) return decode_results(message.view());
    }
  }
  Scratch here_;
  HostilePeer peer_;
  ServerOptions options_;
  test::Lines log_;
  ClientState client_;
  std::unique_ptr<Server> server_;
  std::future<void> serving_;
};

TEST_F(HostileClient, AHoleOfAnyLengthTakesNoTime) {
  push();
  peer_.say(kPlanTag, Piece{.last = true, .entries = {file_entry("hole", kMaxFile)}});
  decode_answers(peer_.theirs().receive(kBackTag).view());
  peer_.send_records([](RecordWriter& writer) {
    writer.put(Begin{.index = 0, .size = kMaxFile, .mtime = 1, .mode = 0600});
    writer.put(Hole{kMaxFile});
    writer.put(End{});
    writer.put(Finish{});
  });
  auto answered = std::async(std::launch::async, [&] { return results(); });
  ASSERT_TRUE(is_over(answered));
  const Results told = answered.get();
  ASSERT_EQ(told.failures.size(), 1u);
  EXPECT_NE(told.failures[0].text.find("checksum"), std::string::npos) << told.failures[0].text;
}

TEST_F(HostileClient, TheEndBeforeTheEndEndsTheSession) {
  write_file(here_ / "served/file", "contents");
  pull("file");
  peer_.say(kBackTag, Results{.failures = {}, .done = true, .counts = {}});
  EXPECT_TRUE(is_over(serving_));
  EXPECT_TRUE(log_.has("before all was sent"));
}

TEST_F(HostileClient, WhoOrdersNothingIsSentAway) {
  options_.limits.order = 0.3;
  serve();
  EXPECT_TRUE(is_over(serving_));
  EXPECT_TRUE(log_.has("asked for nothing"));
}

TEST_F(HostileClient, FailuresOfFilesThatWereNotListed) {
  write_file(here_ / "served/file", "contents");
  pull("file");
  peer_.say(kBackTag, Results{.failures = {{77, "no\x1b[2J"}}, .done = false, .counts = {}});
  EXPECT_TRUE(is_over(serving_));
  EXPECT_TRUE(log_.has("not listed"));
}

TEST_F(HostileClient, MoreFailuresThanFiles) {
  write_file(here_ / "served/file", "contents");
  pull("file");
  peer_.theirs().receive(kPlanTag);  // it is listed now
  try {
    for (int i = 0; i < 2; ++i)
      peer_.say(kBackTag, Results{.failures = std::vector<Failure>(256, {0, std::string(900, '\x1b')}),
                                  .done = false,
                                  .counts = {}});
  } catch (const PathError&) {  // the first ones were too many already
  }
  EXPECT_TRUE(is_over(serving_));
  EXPECT_LT(log_.all().size(), 12u);
  for (const std::string& line : log_.all()) {
    EXPECT_FALSE(has_control_characters(line)) << line;
    EXPECT_LE(line.size(), 1000u);
  }
}

TEST_F(HostileClient, ManyBadNamesMakeFewLines) {
  push();
  constexpr std::uint64_t kMany = 5000;
  Piece piece{.last = true, .entries = {}};
  for (std::uint64_t i = 0; i < kMany; ++i)
    piece.entries.push_back(file_entry("../\x1b[2J" + std::string(150, 'x'), 8));
  peer_.say(kPlanTag, piece);
  peer_.send_records([](RecordWriter& writer) { writer.put(Finish{}); });
  std::uint64_t told = 0;
  for (Results some = results(); !some.done; some = results()) {
    told += some.failures.size();
    for (const Failure& failure : some.failures) ASSERT_FALSE(has_control_characters(failure.text));
  }
  EXPECT_EQ(told, kMany);
  peer_.say(kControlTag, Order{});
  EXPECT_TRUE(is_over(serving_));
  EXPECT_TRUE(log_.has("5000 failed"));
  EXPECT_LT(log_.all().size(), 2u * PeerLog::kAMinute);
}

TEST_F(HostileClient, ListsWithoutFilesFillNoMemory) {
  push();
  constexpr std::size_t kPieces = 12;
  for (std::size_t n = 0; n < kPieces; ++n) {
    Piece piece{.first = n * kMaxEntries, .last = false, .entries = {}};
    for (std::size_t i = 0; i < kMaxEntries; ++i)
      piece.entries.push_back(file_entry(fmt::format("f{}", n * kMaxEntries + i), 8));
    peer_.say(kPlanTag, piece);
  }
  std::size_t answered = 0;
  while (peer_.theirs().receive_for(kBackTag, answered < 4 ? 60 : 3)) ++answered;
  EXPECT_EQ(answered, 4u);  // 32768 files are wanted: no more until some have come
  // Those that come let more be answered.
  peer_.send_records([](RecordWriter& writer) { put_file(writer, 0, "contents"); });
  EXPECT_TRUE(peer_.theirs().receive_for(kBackTag, 60));
  peer_.theirs().give_up();
  EXPECT_TRUE(is_over(serving_));
}

TEST_F(HostileClient, PushesNothingExecutableUnlessAllowed) {
  for (const bool perms : {false, true}) {
    const std::string name = perms ? "allowed" : "plain";
    HostilePeer peer;
    options_.perms = perms;
    Server server(options_);
    ClientState client;
    auto serving = std::async(std::launch::async, [&] { server.serve(peer.ours(), client); });
    Order order;
    order.action = Order::Action::kPush;
    peer.say(kControlTag, order);
    peer.say(kPlanTag, Piece{.last = true, .entries = {file_entry(name, 8, 0777)}});
    peer.theirs().receive(kControlTag);
    decode_answers(peer.theirs().receive(kBackTag).view());
    peer.send_records([](RecordWriter& writer) {
      put_file(writer, 0, "contents", 0777);
      writer.put(Finish{});
    });
    EXPECT_TRUE(decode_results(peer.theirs().receive(kBackTag).view()).done);
    peer.say(kControlTag, Order{});
    EXPECT_TRUE(is_over(serving));
    struct stat status {};
    ASSERT_EQ(stat((here_ / "served" / name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, perms ? 0777u : 0644u);
  }
}

}  // namespace
}  // namespace maki::wan::copy
