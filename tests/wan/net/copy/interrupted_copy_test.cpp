// Copies that are cut off, that run out of room, and whose files change meanwhile.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "tests/wan/net/copy/two_folders.hpp"
#include "wan/net/copy/message.hpp"
#include "wan/net/copy/receiver.hpp"
#include "wan/net/copy/sender.hpp"

namespace maki::wan::copy {
namespace {

using InterruptedCopy = TwoFolders;

TEST_F(InterruptedCopy, ContinuesAfterInterruptionsAtRandomPoints) {
  make_tree(local() / "tree", 60);
  write_file(local() / "tree/large", random_text(3 << 20, 7));
  std::mt19937 random(3);
  std::uint64_t moved = 0;
  for (int cut = 0; cut < 3; ++cut) EXPECT_THROW(push("tree", "", 400000 + random() % 600000), PathError);
  EXPECT_EQ(parts_below(served()) > 0 || fs::exists(served() / "tree/large"), true);
  const CopyReport last = push("tree", "");
  EXPECT_TRUE(last.complete());
  EXPECT_EQ(difference(local() / "tree", served() / "tree"), "");
  EXPECT_EQ(parts_below(served()), 0);
  EXPECT_LT(last.counts.bytes, 3u << 20);  // the earlier ones counted
  moved = last.counts.bytes;
  EXPECT_GT(moved, 0u);
}

TEST_F(InterruptedCopy, ContinuesAPullToo) {
  write_file(served() / "large", random_text(3 << 20, 8));
  for (int cut = 0; cut < 3; ++cut) EXPECT_THROW(pull("large", "large", 700000), PathError);
  const CopyReport last = pull("large", "large");
  EXPECT_EQ(difference(served(), local()), "");
  EXPECT_LT(last.counts.bytes, 1200000u);
}

TEST_F(InterruptedCopy, ADamagedPartialFileIsNotContinued) {
  const std::string text = random_text(2 << 20, 9);
  write_file(local() / "f", text);
  std::string damaged = text.substr(0, 1 << 20);
  damaged[12345] ^= 1;
  write_file(served() / ".f.maki-part", damaged);
  const CopyReport report = push("f", "f");
  EXPECT_EQ(report.counts.bytes, text.size());
  EXPECT_EQ(read_file(served() / "f"), text);
  EXPECT_EQ(parts_below(served()), 0);
}

TEST_F(InterruptedCopy, APartialFileThatIsRightOrTooLong) {
  const std::string text = random_text(1 << 20, 10);
  write_file(local() / "f", text);
  write_file(served() / ".f.maki-part", text.substr(0, 1 << 19));
  EXPECT_EQ(push("f", "f").counts.bytes, std::uint64_t{1} << 19);
  write_file(served() / ".g.maki-part", text + "more");
  EXPECT_EQ(push("f", "g").counts.bytes, text.size());
  write_file(served() / ".h.maki-part", text);
  EXPECT_EQ(push("f", "h").counts.bytes, 0u);
  for (const char* name : {"f", "g", "h"}) EXPECT_EQ(read_file(served() / name), text) << name;
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
  utimensat(AT_FDCWD, (local() / "f").c_str(), times, 0);
  utimensat(AT_FDCWD, (served() / "f").c_str(), times, 0);
  EXPECT_EQ(push("f", "f").counts.skipped, 1u);
  EXPECT_EQ(read_file(served() / "f"), "two");
  CopyOptions careful = options();
  careful.checksum = true;
  with_client([&](Client& client) { return client.push({(local() / "f").string()}, "f", careful); });
  EXPECT_EQ(read_file(served() / "f"), "six");
  // Same contents, another time: nothing moves but the time.
  utimensat(AT_FDCWD, (served() / "f").c_str(), nullptr, 0);
  const CopyReport touched = push("f", "f");
  EXPECT_EQ(touched.counts.bytes, 0u);
  EXPECT_EQ(touched.counts.skipped, 1u);
  EXPECT_EQ(difference(local(), served()), "");
}

// A client was killed, its path still hopes, and the copy is started again: the second takes over.
TEST_F(InterruptedCopy, ALaterCopyTakesOverFromOneThatHangs) {
  const std::string text = random_text(2 << 20, 11);
  write_file(local() / "f", text);
  auto stuck = std::make_shared<PipeState>(kUnlimited);
  PipeChannel far(stuck, 1);
  ClientState client;
  std::thread serving([&] { server_->serve(far, client); });
  PipeChannel near(stuck, 0);
  Order order;
  order.action = Order::Action::kPush;
  order.sole_file = true;
  order.destination = "f";
  near.send(kControlTag, encode(order));
  ASSERT_TRUE(decode_reply(near.receive(kControlTag).view()).agreed);
  Piece piece;
  piece.entries.push_back({.kind = Kind::kFile, .path = "f", .size = text.size(), .mtime = 1, .mode = 0600});
  near.send(kPlanTag, encode(piece));
  near.receive(kBackTag);
  RecordWriter writer(1 << 20, [&](Bytes message) { near.send(kDataTag, std::move(message)); });
  writer.put(Begin{.index = 0, .size = text.size(), .mtime = 1, .mode = 0600});
  const auto room = writer.room(100000);
  std::memcpy(room.data(), text.data(), 100000);
  writer.filled(100000);
  writer.flush();
  while (!fs::exists(served() / ".f.maki-part") || fs::file_size(served() / ".f.maki-part") < 100000) usleep(1000);
  const CopyReport report = push("f", "f");
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(report.counts.bytes, text.size() - 100000);
  EXPECT_EQ(read_file(served() / "f"), text);
  // What the first one still sends harms nothing.
  std::memset(writer.room(100000).data(), 0, 100000);
  writer.filled(100000);
  writer.flush();
  const Results results = decode_results(near.receive(kBackTag).view());
  ASSERT_EQ(results.failures.size(), 1u);
  EXPECT_NE(results.failures[0].text.find("taken over"), std::string::npos);
  stuck->cut();
  serving.join();
  EXPECT_EQ(read_file(served() / "f"), text);
}

TEST_F(InterruptedCopy, AFullDisk) {
  const fs::path small = here_ / "served/small";
  fs::create_directories(small);
  if (mount("maki", small.c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "mounting a small disk needs root";
  write_file(local() / "t/a", "A");
  write_file(local() / "t/large", random_text(3 << 20, 13));
  write_file(local() / "t/z", "Z");
  const CopyReport report = push("t", "small");
  EXPECT_EQ(report.counts.failed, 1u);
  EXPECT_EQ(report.counts.files, 2u);
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_NE(report.problems[0].find("No space left"), std::string::npos) << report.problems[0];
  EXPECT_FALSE(fs::exists(small / "t/large"));
  EXPECT_EQ(read_file(small / "t/a"), "A");
  // With room, it goes on from what there is.
  ASSERT_EQ(mount("maki", small.c_str(), "tmpfs", MS_REMOUNT, "size=8m"), 0);
  const CopyReport again = push("t", "small");
  EXPECT_TRUE(again.complete());
  EXPECT_LT(again.counts.bytes, 3u << 20);
  EXPECT_EQ(difference(local() / "t", small / "t"), "");
  EXPECT_EQ(umount(small.c_str()), 0);
}

TEST_F(InterruptedCopy, ASourceThatVanishesOrGrows) {
  write_file(local() / "t/a", "A");
  write_file(local() / "t/b", "B");
  write_file(local() / "t/c", "C");
  const auto root = std::make_shared<const Root>((local() / "t").string());
  // Listed, but gone by the time that it is asked for: between the two there is a round trip.
  auto state = std::make_shared<PipeState>(kUnlimited);
  PipeChannel far(state, 1), near(state, 0);
  Progress progress;
  Leases leases;
  const Root there(served().string());
  Receiver receiver(far, there, leases, {.path = "x/"}, progress, {});
  Progress sent;
  Sender sender(near, {{root, "", ""}}, sent, {}, kSmallBatch);
  state->hold(kBackTag);
  std::thread receiving([&] { receiver.run(); });
  std::thread removing([&] {
    state->wait_for(kBackTag);
    fs::remove(local() / "t/b");
    write_file(local() / "t/c", "longer now");
    state->release(kBackTag);
  });
  const CopyReport report = sender.run();
  removing.join();
  receiving.join();
  EXPECT_EQ(report.counts.failed, 1u);
  EXPECT_EQ(report.counts.files, 2u);
  EXPECT_EQ(read_file(served() / "x/a"), "A");
  EXPECT_EQ(read_file(served() / "x/c"), "longer now");  // as it is when it is read
  EXPECT_FALSE(fs::exists(served() / "x/b"));
}

}  // namespace
}  // namespace maki::wan::copy
