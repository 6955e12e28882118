// Copies between two folders, over a connection within the process.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "tests/wan/net/copy/two_folders.hpp"

namespace maki::wan::copy {
namespace {

using Copy = TwoFolders;

TEST_F(Copy, PushesATree) {
  make_tree(local() / "tree", 200);
  const CopyReport report = push("tree", "deep/er");
  EXPECT_EQ(difference(local() / "tree", served() / "deep/er/tree"), "");
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(report.counts.files, 201u);
  EXPECT_EQ(parts_below(served()), 0);
}

TEST_F(Copy, PullsATree) {
  make_tree(served() / "tree", 200);
  const CopyReport report = pull("/tree", "copy");
  EXPECT_EQ(difference(served() / "tree", local() / "copy/tree"), "");
  EXPECT_EQ(report.counts.files, 201u);
  EXPECT_TRUE(report.complete());
}

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

TEST_F(Copy, ASecondCopyMovesNothing) {
  make_tree(local() / "tree", 100);
  push("tree", "");
  const CopyReport again = push("tree", "");
  EXPECT_EQ(again.counts.files, 0u);
  EXPECT_EQ(again.counts.bytes, 0u);
  EXPECT_EQ(again.counts.skipped, 101u);
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
  const CopyReport report = with_client([&](Client& client) {
    return client.push({(local() / "a").string(), (local() / "tree").string()}, "x", options());
  });
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(read_file(served() / "x/a"), "A");
  EXPECT_EQ(difference(local() / "tree", served() / "x/tree"), "");
  const CopyReport back = with_client([&](Client& client) {
    return client.pull({"x/a", "x/none", "x/tree"}, (local() / "back").string(), options());
  });
  EXPECT_EQ(back.counts.failed, 1u);
  ASSERT_EQ(back.problems.size(), 1u);
  EXPECT_NE(back.problems[0].find("x/none"), std::string::npos);
  EXPECT_EQ(difference(served() / "x", local() / "back"), "");
}

TEST_F(Copy, LinksAndSpecialFilesAreLeftOut) {
  write_file(local() / "t/f", "x");
  fs::create_symlink("/etc/passwd", local() / "t/link");
  ASSERT_EQ(mkfifo((local() / "t/pipe").c_str(), 0600), 0);
  const CopyReport report = push("t", "");
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(report.notes.size(), 2u);
  EXPECT_FALSE(fs::exists(fs::symlink_status(served() / "t/link")));
  EXPECT_EQ(read_file(served() / "t/f"), "x");
}

TEST_F(Copy, WhatIsInTheWayIsSaidAndTheOthersGoOn) {
  for (const char* name : {"a", "b", "c", "d"}) write_file(local() / "t" / name, name);
  fs::create_directories(served() / "t/a");  // a folder where a file should go
  ASSERT_EQ(mkfifo((served() / "t/b").c_str(), 0600), 0);
  const CopyReport report = push("t", "");
  EXPECT_EQ(report.counts.failed, 2u);
  EXPECT_EQ(report.counts.files, 2u);
  ASSERT_EQ(report.problems.size(), 2u);
  EXPECT_NE((report.problems[0] + report.problems[1]).find("special file"), std::string::npos);
  EXPECT_EQ(read_file(served() / "t/c"), "c");
  EXPECT_EQ(read_file(served() / "t/d"), "d");
}

TEST_F(Copy, AFileInPlaceOfAFolder) {
  write_file(local() / "t/sub/a", "A");
  write_file(local() / "t/z", "Z");
  write_file(served() / "t/sub", "a file");
  const CopyReport report = push("t", "");
  EXPECT_EQ(report.counts.failed, 2u);  // the folder and what is in it
  EXPECT_EQ(read_file(served() / "t/z"), "Z");
}

TEST_F(Copy, AReadOnlyServer) {
  ServerOptions options;
  options.others = Share{served().string(), true};
  start(options);
  write_file(local() / "a", "A");
  write_file(served() / "b", "B");
  EXPECT_THROW(push("a", "a"), Error);
  EXPECT_FALSE(fs::exists(served() / "a"));
  pull("b", "b");
  EXPECT_EQ(read_file(local() / "b"), "B");
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
  const CopyReport report = push("sparse", "");
  EXPECT_TRUE(report.complete());
  EXPECT_LT(report.counts.bytes, 3u << 20);
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
  const CopyReport report = push("t", "");
  EXPECT_EQ(report.counts.files, 2500u);
  EXPECT_EQ(report.counts.failed, 1u);
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_NE(report.problems[0].find("128 folders deep"), std::string::npos) << report.problems[0];
  EXPECT_EQ(difference(local() / "t/wide", served() / "t/wide"), "");
}

TEST_F(Copy, FoldersThatAreNamedAreNotHeldOpen) {
  const auto open_now = [] { return std::distance(fs::directory_iterator("/proc/self/fd"), {}); };
  const auto root = std::make_shared<const Root>(served().string());
  std::vector<Source> sources;
  const auto before = open_now();
  for (int i = 0; i < 300; ++i) {
    const std::string name = fmt::format("d{}", i);
    write_file(served() / name / "f", "x");
    sources.push_back(served_source(root, name));
  }
  EXPECT_LT(open_now() - before, 100);
}

TEST_F(Copy, LongNamesAndOddOnes) {
  const std::string longest(255, 'n');
  write_file(local() / "t" / longest, "long");
  write_file(local() / "t" / "new\nline", "odd");
  write_file(local() / "t" / "\xff\xfe", "not UTF-8");
  EXPECT_TRUE(push("t", "").complete());
  EXPECT_EQ(difference(local() / "t", served() / "t"), "");
}

}  // namespace
}  // namespace maki::wan::copy
