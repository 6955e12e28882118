// A server outlives clients that hold a key and say what they like; whoever fetches files gets those that were asked
// for, whatever the server says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/wan/net/copy/copy_fixture.hpp"
#include "wan/net/copy/client.hpp"
#include "wan/net/copy/sync.hpp"

namespace maki::wan::copy {
namespace {

class HostileClient : public ::testing::Test {
 protected:
  HostileClient() {
    fs::create_directories(here_ / "served");
    options_ = sharing(here_ / "served");
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
    ASSERT_EQ(decode_reply(peer_.theirs().receive(kControlTag).view()).word, Reply::Word::kAgreed);
  }
  Results results() {
    for (;;) {
      const Bytes message = peer_.theirs().receive(kBackTag);
      if (is_results(message.view())) return decode_results(message.view());
    }
  }
  // That a file has once it is pushed.
  unsigned mode_of_executable() {
    push();
    peer_.say(kPlanTag, Piece{.last = true, .entries = {file_entry("run", 8, 0777)}});
    decode_answers(peer_.theirs().receive(kBackTag).view());
    peer_.send_records([](RecordWriter& writer) {
      put_file(writer, 0, "contents", 0777);
      writer.put(Finish{});
    });
    EXPECT_TRUE(results().done);
    return mode_of(here_ / "served/run");
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
  ASSERT_TRUE(test::is_over(answered));
  const Results told = answered.get();
  ASSERT_EQ(told.failures.size(), 1u);
  EXPECT_NE(told.failures[0].text.find("checksum"), std::string::npos) << told.failures[0].text;
}

TEST_F(HostileClient, TheEndBeforeTheEndEndsTheSession) {
  write_file(here_ / "served/file", "contents");
  pull("file");
  peer_.say(kBackTag, Results{.failures = {}, .done = true, .counts = {}});
  EXPECT_TRUE(test::is_over(serving_));
  EXPECT_TRUE(log_.has("before all was sent"));
}

TEST_F(HostileClient, WhoOrdersNothingIsSentAway) {
  options_.limits.order = 0.3;
  serve();
  EXPECT_TRUE(test::is_over(serving_));
  EXPECT_TRUE(log_.has("asked for nothing"));
}

TEST_F(HostileClient, FailuresOfFilesThatWereNotListed) {
  write_file(here_ / "served/file", "contents");
  pull("file");
  peer_.say(kBackTag, Results{.failures = {{77, "no\x1b[2J"}}, .done = false, .counts = {}});
  EXPECT_TRUE(test::is_over(serving_));
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
  EXPECT_TRUE(test::is_over(serving_));
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
  EXPECT_TRUE(test::is_over(serving_));
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
  EXPECT_TRUE(test::is_over(serving_));
}

TEST_F(HostileClient, PushesNothingExecutable) { EXPECT_EQ(mode_of_executable(), 0644u); }

TEST_F(HostileClient, PushesWhatIsExecutableWhereAllowed) {
  options_.perms = true;
  EXPECT_EQ(mode_of_executable(), 0777u);
}

class HostileServer : public ::testing::Test {
 protected:
  // Fetches `asked` from a server that sends these files in place of an answer to it.
  Counts pull(const std::vector<std::string>& asked, const std::vector<Entry>& entries, bool sole_file = false,
              const CopyOptions& options = {}) {
    HostilePeer peer;
    auto serving = std::async(std::launch::async, [&] {
      try {
        decode_order(peer.theirs().receive(kControlTag).view());
        peer.say(kControlTag, Reply{.word = Reply::Word::kAgreed, .sole_file = sole_file, .reason = ""});
        peer.say(kPlanTag, Piece{.first = 0, .last = true, .entries = entries});
        const Answers answers = decode_answers(peer.theirs().receive(kBackTag).view());
        peer.send_records([&](RecordWriter& writer) {
          for (std::size_t i = 0; i < entries.size(); ++i)
            if (answers.answers.at(i).request == FileRequest::kSend) put_file(writer, i, "contents", entries[i].mode);
          writer.put(Note{true, "a\x1b]0;title\x07 note"});
          writer.put(Finish{});
        });
        while (!decode_results(peer.theirs().receive(kBackTag).view()).done) {
        }
      } catch (const Error&) {
      }
    });
    Client client(peer.take_ours());
    return client.pull(asked, here_ / "got/", options);
  }
  bool got(const std::string& name) const { return fs::exists(fs::symlink_status(here_ / "got" / name)); }
  Scratch here_;
};

TEST_F(HostileServer, WritesNothingThatWasNotAskedFor) {
  for (const char* name : {".ssh/authorized_keys", "other", "data.h", "b/data.h5", "Data.h5", "data.h55"}) {
    EXPECT_THROW(pull({"/b/data.h5"}, {file_entry(name, 8)}), ProtocolError) << name;
    EXPECT_FALSE(got(name)) << name;
  }
  EXPECT_THROW(pull({"data"}, {{.kind = Kind::kFolder, .path = ".ssh", .mode = 0700}}), ProtocolError);
  EXPECT_FALSE(got(".ssh"));
  EXPECT_THROW(pull({"data"}, {file_entry("data/a", 8), file_entry("evil", 8)}), ProtocolError);
  EXPECT_FALSE(got("evil"));
}

TEST_F(HostileServer, WhatIsBelowANameComes) {
  EXPECT_EQ(pull({"x/data"}, {file_entry("data/a/b", 8), file_entry("data/c", 8)}).files, 2u);
  EXPECT_TRUE(got("data/a/b") && got("data/c"));
  EXPECT_EQ(pull({"x/"}, {file_entry("anything", 8)}).files, 1u);  // what is in a folder only the server knows
  EXPECT_TRUE(got("anything"));
}

TEST_F(HostileServer, OneFileIsOneFile) {
  EXPECT_EQ(pull({"data"}, {file_entry("data", 8)}, true).files, 1u);
  EXPECT_THROW(pull({"data"}, {file_entry("data", 8), file_entry("data", 8)}, true), ProtocolError);
  EXPECT_THROW(pull({"data"}, {file_entry("data/x", 8)}, true), ProtocolError);
  EXPECT_THROW(pull({"data"}, {{.kind = Kind::kFolder, .path = "data", .mode = 0700}}, true), ProtocolError);
  EXPECT_THROW(pull({"data", "more"}, {file_entry("data", 8)}, true), ProtocolError);
  EXPECT_THROW(pull({"dir/"}, {file_entry("other", 8)}, true), ProtocolError);
}

TEST_F(HostileServer, NothingBecomesExecutableUnlessAsked) {
  const std::vector<Entry> entries = {file_entry("data/run", 8, 0777),
                                      {.kind = Kind::kFolder, .path = "data/d", .mode = 0777}};
  pull({"data"}, entries);
  EXPECT_EQ(mode_of(here_ / "got/data/run"), 0644u);
  EXPECT_EQ(mode_of(here_ / "got/data/d"), 0755u);
  pull({"data"}, entries);  // it is there already
  EXPECT_EQ(mode_of(here_ / "got/data/run"), 0644u);
  CopyOptions options;
  options.perms = true;
  pull({"data"}, entries, false, options);
  EXPECT_EQ(mode_of(here_ / "got/data/run"), 0777u);
  EXPECT_EQ(mode_of(here_ / "got/data/d"), 0777u);
  pull({"data"}, {file_entry("data/run", 9, 0600), entries[1]});  // other contents: what is there keeps its mode
  EXPECT_EQ(mode_of(here_ / "got/data/run"), 0777u);
  EXPECT_EQ(mode_of(here_ / "got/data/d"), 0777u);
}

TEST_F(HostileServer, ItsWordsReachNoTerminal) {
  CopyOptions options;
  options.on_note = [](bool, const std::string& text) { EXPECT_FALSE(has_control_characters(text)) << text; };
  EXPECT_EQ(pull({"data"}, {file_entry("data", 8)}, false, options).failed, 1u);
  HostilePeer peer;
  peer.say(kControlTag, Reply{.reason = "no\x1b[2J" + std::string(5000, 'x')});
  Client client(peer.take_ours());
  const std::string error = test::error_of([&] { client.pull({"data"}, here_ / "got/"); });
  EXPECT_TRUE(test::says(error, "refuses the copy"));
  EXPECT_FALSE(has_control_characters(error)) << error;
  EXPECT_LT(error.size(), 1500u);
}

TEST_F(HostileServer, ThatIsNoServerIsNamed) {
  HostilePeer peer;
  auto leaving = std::async(std::launch::async, [&] {
    peer.theirs().receive(kControlTag);
    peer.leave();
  });
  Client client(peer.take_ours());
  EXPECT_TRUE(test::says(test::error_of([&] { client.pull({"data"}, here_ / "got/"); }),
                         "see that 'maki wan serve' runs there"));
}

TEST_F(HostileServer, FilesThatWereAnnouncedHaveToCome) {
  HostilePeer peer;
  peer.say(kControlTag, Reply{.word = Reply::Word::kAgreed});
  peer.say(kPlanTag, Piece{.first = 0, .last = true, .entries = {file_entry("data", 8)}});
  auto ending = std::async(std::launch::async, [&] {
    decode_answers(peer.theirs().receive(kBackTag).view());
    peer.send_records([](RecordWriter& writer) { writer.put(Finish{}); });
  });
  Client client(peer.take_ours());
  EXPECT_THROW(client.pull({"data"}, here_ / "got/"), ProtocolError);
}

TEST_F(HostileServer, ThatNeverAnswersDoesNotHoldASync) {
  write_file(here_ / "watched/file", "x");
  std::atomic<bool> stop{false};
  SyncOptions options;
  options.folder = here_ / "watched";
  options.settle = 0;
  options.stop = [&] { return stop.load(); };
  test::Pair pair(test::streams(1));
  options.connect = [&] { return std::move(pair.here); };
  Sync sync(options);
  auto running = std::async(std::launch::async, [&] { return sync.run(); });
  MessageChannel server(std::move(pair.there));
  decode_order(server.receive(kControlTag).view());  // and nothing more is said
  stop = true;
  EXPECT_TRUE(test::is_over(running));
}

}  // namespace
}  // namespace maki::wan::copy
