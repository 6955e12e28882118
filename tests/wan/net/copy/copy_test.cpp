// Copies between two folders; those that are cut off, that run out of room, and whose files change meanwhile.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "tests/small_disk.hpp"
#include "tests/wan/net/copy/copy_fixture.hpp"
#include "wan/net/copy/client.hpp"
#include "wan/net/copy/message.hpp"
#include "wan/net/copy/receiver.hpp"
#include "wan/net/copy/sender.hpp"
#include "wan/net/copy/server.hpp"

namespace maki::wan::copy {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kSmallBatch = 64 << 10;

// A server's folder and a client's, joined by a path.
class TwoFolders : public ::testing::Test {
 protected:
  TwoFolders() {
    fs::create_directories(here_ / "served");
    fs::create_directories(here_ / "local");
    ServerOptions options = sharing(served());
    options.batch = kSmallBatch;
    server_ = std::make_unique<Server>(options);
  }
  fs::path served() const { return here_ / "served"; }
  fs::path local() const { return here_ / "local"; }
  // Of the next copy, whose problems and notes are kept.
  CopyOptions options() {
    problems_.clear();
    notes_.clear();
    CopyOptions options;
    options.batch = kSmallBatch;
    options.on_note = [this](bool failed, const std::string& text) { (failed ? problems_ : notes_).push_back(text); };
    return options;
  }
  // One, which says this.
  void expect_problem(const std::string& part) const {
    ASSERT_EQ(problems_.size(), 1u);
    EXPECT_TRUE(test::says(problems_[0], part));
  }

  // Calls work(client), with the server at the other end; the connection breaks after `budget` bytes.
  template <class Work>
  auto with_client(Work work, std::uint64_t budget = kUnlimited) {
    test::Pair pair(test::streams(1));
    const std::jthread serving([&] {
      CutChannel far(std::move(pair.there), budget);
      ClientState seen_from_there;
      server_->serve(far, seen_from_there);
    });
    Client client(std::make_unique<CutChannel>(std::move(pair.here), budget));
    return work(client);
  }
  Counts push(const std::string& what, const std::string& to, std::uint64_t budget = kUnlimited) {
    return with_client(
        [&](Client& client) { return client.push({(local() / what).string() + end_of(what)}, to, options()); }, budget);
  }
  Counts pull(const std::string& what, const std::string& to, std::uint64_t budget = kUnlimited) {
    return with_client(
        [&](Client& client) { return client.pull({what}, (local() / to).string() + end_of(to), options()); }, budget);
  }
  static std::string end_of(const std::string& name) { return name.ends_with('/') ? "/" : ""; }

  Scratch here_;
  std::unique_ptr<Server> server_;
  std::vector<std::string> problems_, notes_;
};

using Copy = TwoFolders;

TEST_F(Copy, ASlashAtTheEndStandsForTheContents) {
  make_tree(local() / "tree", 20);
  push("tree/", "there");
  EXPECT_EQ(difference(local() / "tree", served() / "there"), "");
  pull("there/", "back");
  EXPECT_EQ(difference(local() / "tree", local() / "back"), "");
  // From the root and to the root.
  push("tree/", "/");
  EXPECT_TRUE(fs::exists(served() / "d1"));
  pull("/", "all");
  EXPECT_EQ(difference(served(), local() / "all"), "");
}

TEST_F(Copy, OneFileTakesTheNameOfItsDestination) {
  write_file(local() / "a", "first");
  push("a", "sub/b");
  EXPECT_EQ(read_file(served() / "sub/b"), "first");
  push("a", "sub");
  EXPECT_EQ(read_file(served() / "sub/a"), "first");
  push("a", "new/");
  EXPECT_EQ(read_file(served() / "new/a"), "first");
  pull("sub/b", "c");
  EXPECT_EQ(read_file(local() / "c"), "first");
  write_file(served() / "sub/b", "second one");
  pull("sub/b", "c");
  EXPECT_EQ(read_file(local() / "c"), "second one");
}

TEST_F(Copy, SeveralSourcesAtOnce) {
  write_file(local() / "a", "A");
  make_tree(local() / "tree", 10);
  const Counts report = with_client([&](Client& client) {
    return client.push({(local() / "a").string(), (local() / "tree").string()}, "x", options());
  });
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(read_file(served() / "x/a"), "A");
  EXPECT_EQ(difference(local() / "tree", served() / "x/tree"), "");
  const Counts back = with_client([&](Client& client) {
    return client.pull({"x/a", "x/none", "x/tree"}, (local() / "back").string(), options());
  });
  EXPECT_EQ(back.failed, 1u);
  expect_problem("x/none");
  EXPECT_EQ(difference(served() / "x", local() / "back"), "");
}

TEST_F(Copy, LinksAndSpecialFilesAreLeftOut) {
  write_file(local() / "t/f", "x");
  fs::create_symlink("/etc/passwd", local() / "t/link");
  ASSERT_EQ(mkfifo((local() / "t/pipe").c_str(), 0600), 0);
  const Counts report = push("t", "");
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(notes_.size(), 2u);
  EXPECT_FALSE(fs::exists(fs::symlink_status(served() / "t/link")));
  EXPECT_EQ(read_file(served() / "t/f"), "x");
}

TEST_F(Copy, WhatIsInTheWayIsSaidAndTheOthersGoOn) {
  for (const char* name : {"a", "b", "c", "d", "sub/e"}) write_file(local() / "t" / name, name);
  fs::create_directories(served() / "t/a");  // a folder where a file should go
  write_file(served() / "t/sub", "a file where a folder should go");
  ASSERT_EQ(mkfifo((served() / "t/b").c_str(), 0600), 0);
  const Counts report = push("t", "");
  EXPECT_EQ(report.failed, 4u);  // with what is in the folder
  EXPECT_EQ(report.files, 2u);
  EXPECT_EQ(problems_.size(), 4u);
  EXPECT_TRUE(test::says(maki::test::text_of(problems_), "special file"));
  EXPECT_EQ(read_file(served() / "t/c"), "c");
  EXPECT_EQ(read_file(served() / "t/d"), "d");
}

TEST_F(Copy, TwoClientsAtOnce) {
  make_tree(local() / "one", 150, 1);
  make_tree(local() / "two", 150, 900);
  std::thread other([&] { push("one", "x"); });
  push("two", "x");
  other.join();
  EXPECT_EQ(difference(local() / "one", served() / "x/one"), "");
  EXPECT_EQ(difference(local() / "two", served() / "x/two"), "");
}

// Offsets beyond 32 bits, without the disk to hold them: the file is nearly all hole, and stays so.
class FullCopy : public Copy {};
TEST_F(FullCopy, ASparseFileOfMoreThan4GB) {
  constexpr off_t kSize = (off_t{5} << 30) + 12345;
  const std::string text = random_text(1 << 20, 12);
  const int file = open((local() / "sparse").c_str(), O_RDWR | O_CREAT, 0600);
  for (const off_t at : {off_t{1} << 20, (off_t{4} << 30) - 100, off_t{5} << 30})
    ASSERT_EQ(pwrite(file, text.data(), text.size(), at), static_cast<ssize_t>(text.size()));
  ASSERT_EQ(ftruncate(file, kSize), 0);
  close(file);
  EXPECT_THROW(push("sparse", "", 1600000), PathError);
  const Counts report = push("sparse", "");
  EXPECT_TRUE(report.complete());
  EXPECT_LT(report.bytes, 3u << 20);
  EXPECT_EQ(std::system(
                fmt::format("cmp '{}' '{}'", (local() / "sparse").string(), (served() / "sparse").string()).c_str()),
            0);
  struct stat status;
  ASSERT_EQ(stat((served() / "sparse").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, kSize);
  EXPECT_LT(status.st_blocks * 512, 100 << 20);
}

TEST_F(Copy, DeepAndWideFolders) {
  std::string deep = "t";
  for (int i = 0; i < 140; ++i) deep = join(deep, "d");
  fs::create_directories(local() / deep);
  for (int i = 0; i < 2500; ++i) write_file(local() / "t/wide" / fmt::format("{}", i), "x");
  const Counts report = push("t", "");
  EXPECT_EQ(report.files, 2500u);
  EXPECT_EQ(report.failed, 1u);
  expect_problem("128 folders deep");
  EXPECT_EQ(difference(local() / "t/wide", served() / "t/wide"), "");
}

TEST_F(Copy, FoldersThatAreNamedAreNotHeldOpen) {
  const auto root = std::make_shared<const Root>(served().string());
  std::vector<Source> sources;
  const std::size_t before = test::open_descriptors();
  for (int i = 0; i < 300; ++i) {
    const std::string name = fmt::format("d{}", i);
    write_file(served() / name / "f", "x");
    sources.push_back(served_source(root, name));
  }
  EXPECT_LT(test::open_descriptors(), before + 100);
}

TEST_F(Copy, LongNamesAndOddOnes) {
  const std::string longest(255, 'n');
  write_file(local() / "t" / longest, "long");
  write_file(local() / "t" / "new\nline", "odd");
  write_file(local() / "t" / "\xff\xfe", "not UTF-8");
  EXPECT_TRUE(push("t", "").complete());
  EXPECT_EQ(difference(local() / "t", served() / "t"), "");
}

using InterruptedCopy = TwoFolders;

TEST_F(InterruptedCopy, ContinuesAfterInterruptionsAtRandomPoints) {
  make_tree(local() / "tree", 60);
  write_file(local() / "tree/large", random_text(3 << 20, 7));
  std::mt19937 random(3);
  for (int cut = 0; cut < 3; ++cut) EXPECT_THROW(push("tree", "", 400000 + random() % 600000), PathError);
  EXPECT_TRUE(parts_below(served()) > 0 || fs::exists(served() / "tree/large"));
  const Counts last = push("tree", "");
  EXPECT_TRUE(last.complete());
  EXPECT_EQ(difference(local() / "tree", served() / "tree"), "");
  EXPECT_EQ(parts_below(served()), 0);
  std::uint64_t all = 0;
  for (const auto& [name, path] : all_below(local() / "tree"))
    all += fs::is_regular_file(path) ? fs::file_size(path) : 0;
  EXPECT_LT(last.bytes, all);  // the earlier ones counted; a busy server may still hold the part of the last one
  EXPECT_GT(last.bytes, 0u);
}

TEST_F(InterruptedCopy, ContinuesAPullToo) {
  write_file(served() / "large", random_text(3 << 20, 8));
  for (int cut = 0; cut < 3; ++cut) EXPECT_THROW(pull("large", "large", 700000), PathError);
  const Counts last = pull("large", "large");
  EXPECT_EQ(difference(served(), local()), "");
  EXPECT_LT(last.bytes, 3u << 20);  // what has arrived of the earlier ones counted
}

TEST_F(InterruptedCopy, PartialFilesAreContinuedWhereTheyAreRight) {
  const std::string text = random_text(2 << 20, 9), half = text.substr(0, 1 << 20);
  std::string damaged = half;
  damaged[12345] ^= 1;
  write_file(local() / "f", text);
  const std::pair<std::string, std::uint64_t> cases[] = {{half, text.size() - half.size()},
                                                         {damaged, text.size()},
                                                         {text + "more", text.size()},
                                                         {text, 0}};
  int number = 0;
  for (const auto& [part, sent] : cases) {
    const std::string name = fmt::format("f{}", ++number);
    write_file(served() / fmt::format(".{}.maki-part", name), part);
    EXPECT_EQ(push("f", name).bytes, sent) << name;
    EXPECT_EQ(read_file(served() / name), text) << name;
  }
  EXPECT_EQ(parts_below(served()), 0);
}

TEST_F(InterruptedCopy, AChangedSourceIsSentAgain) {
  write_file(local() / "f", "one");
  push("f", "f");
  write_file(local() / "f", "two");
  push("f", "f");
  EXPECT_EQ(read_file(served() / "f"), "two");
  // Same size, same time: only a checksum tells.
  write_file(local() / "f", "six");
  const timespec times[2] = {{5, 0}, {5, 0}};
  for (const fs::path& folder : {local(), served()}) utimensat(AT_FDCWD, (folder / "f").c_str(), times, 0);
  EXPECT_EQ(push("f", "f").skipped, 1u);
  EXPECT_EQ(read_file(served() / "f"), "two");
  CopyOptions careful = options();
  careful.checksum = true;
  with_client([&](Client& client) { return client.push({(local() / "f").string()}, "f", careful); });
  EXPECT_EQ(read_file(served() / "f"), "six");
  // Same contents, another time: nothing moves but the time.
  utimensat(AT_FDCWD, (served() / "f").c_str(), nullptr, 0);
  const Counts touched = push("f", "f");
  EXPECT_EQ(touched.bytes, 0u);
  EXPECT_EQ(touched.skipped, 1u);
  EXPECT_EQ(difference(local(), served()), "");
}

// A client was killed, its path still hopes, and the copy is started again: the second takes over.
TEST_F(InterruptedCopy, ALaterCopyTakesOverFromOneThatHangs) {
  const std::string text = random_text(2 << 20, 11);
  write_file(local() / "f", text);
  HostilePeer stuck;
  ClientState client;
  std::thread serving([&] { server_->serve(stuck.ours(), client); });
  stuck.say(kControlTag, Order{.action = Order::Action::kPush, .sole_file = true, .destination = "f", .sources = {}});
  ASSERT_EQ(decode_reply(stuck.theirs().receive(kControlTag).view()).word, Reply::Word::kAgreed);
  stuck.say(kPlanTag, Piece{.entries = {file_entry("f", text.size(), 0600)}});
  stuck.theirs().receive(kBackTag);
  stuck.send_records([&](RecordWriter& writer) {
    writer.put(Begin{.index = 0, .size = text.size(), .mtime = 1, .mode = 0600});
    std::memcpy(writer.room(100000).data(), text.data(), 100000);
    writer.filled(100000);
  });
  while (!fs::exists(served() / ".f.maki-part") || fs::file_size(served() / ".f.maki-part") < 100000) usleep(1000);
  const Counts report = push("f", "f");
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(report.bytes, text.size() - 100000);
  EXPECT_EQ(read_file(served() / "f"), text);
  // What the first one still sends harms nothing.
  stuck.send_records([](RecordWriter& writer) {
    std::memset(writer.room(100000).data(), 0, 100000);
    writer.filled(100000);
  });
  const Results results = decode_results(stuck.theirs().receive(kBackTag).view());
  ASSERT_EQ(results.failures.size(), 1u);
  EXPECT_NE(results.failures[0].text.find("taken over"), std::string::npos);
  stuck.theirs().give_up();
  serving.join();
  EXPECT_EQ(read_file(served() / "f"), text);
}

TEST_F(InterruptedCopy, AFullDisk) {
  const fs::path small = here_ / "served/small";
  const maki::test::SmallDisk disk(small);
  if (!disk) GTEST_SKIP() << "mounting a small disk needs root";
  write_file(local() / "t/a", "A");
  write_file(local() / "t/large", random_text(3 << 20, 13));
  write_file(local() / "t/z", "Z");
  const Counts report = push("t", "small");
  EXPECT_EQ(report.failed, 1u);
  EXPECT_EQ(report.files, 2u);
  expect_problem("No space left");
  EXPECT_FALSE(fs::exists(small / "t/large"));
  EXPECT_EQ(read_file(small / "t/a"), "A");
  // With room, it goes on from what there is.
  ASSERT_TRUE(disk.resize(8));
  const Counts again = push("t", "small");
  EXPECT_TRUE(again.complete());
  EXPECT_LT(again.bytes, 3u << 20);
  EXPECT_EQ(difference(local() / "t", small / "t"), "");
}

// Calls `change` when the answer to the first list has come, before the sender sees it.
class ChangesOnAnswer : public MessageChannel {
 public:
  ChangesOnAnswer(Path path, std::function<void()> change)
      : MessageChannel(std::move(path)), change_(std::move(change)) {}
  std::optional<Bytes> receive_for(Tag tag, double seconds) override {
    auto message = MessageChannel::receive_for(tag, seconds);
    if (message && tag == kBackTag && change_) std::exchange(change_, nullptr)();
    return message;
  }

 private:
  std::function<void()> change_;
};

TEST_F(InterruptedCopy, ASourceThatVanishesOrGrows) {
  for (const char* name : {"a", "b", "c"}) write_file(local() / "t" / name, name);
  const auto root = std::make_shared<const Root>((local() / "t").string());
  // Listed, but gone by the time that it is asked for: between the two there is a round trip.
  test::Pair pair(test::streams(1));
  MessageChannel far(std::move(pair.there));
  ChangesOnAnswer near(std::move(pair.here), [&] {
    fs::remove(local() / "t/b");
    write_file(local() / "t/c", "longer now");
  });
  Progress progress;
  Leases leases;
  const Root there(served().string());
  Receiver receiver(far, there, leases, {.path = "x/"}, progress, {});
  Progress sent;
  Sender sender(near, {{root, "", ""}}, sent, {}, kSmallBatch);
  std::thread receiving([&] { receiver.run(); });
  const Counts report = sender.run();
  receiving.join();
  EXPECT_EQ(report.failed, 1u);
  EXPECT_EQ(report.files, 2u);
  EXPECT_EQ(read_file(served() / "x/a"), "a");
  EXPECT_EQ(read_file(served() / "x/c"), "longer now");  // as it is when it is read
  EXPECT_FALSE(fs::exists(served() / "x/b"));
}

}  // namespace
}  // namespace maki::wan::copy
