// Confinement: names that would lead out of the root, by what they say or by what lies in their way.
#include "wan/net/copy/root.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <thread>

#include "tests/wan/net/copy/copy_fixture.hpp"
#include "wan/net/error.hpp"

namespace maki::wan::copy {
namespace {

TEST(CopyNames, OnlyRelativeOnesPass) {
  for (const char* good : {"a", "a/b", "..a", "a..", ".hidden", "a b/c\n", "...", "a/.b"})
    EXPECT_NO_THROW(check_path(good)) << good;
  for (const char* bad :
       {"", "/", "/etc/passwd", "..", "../a", "a/..", "a/../b", "./a", "a/.", "a//b", "a/", ".a.maki-part"})
    EXPECT_THROW(check_path(bad), FileProblem) << bad;
  EXPECT_THROW(check_path(std::string_view("a\0b", 3)), FileProblem);
  EXPECT_THROW(check_path(std::string(256, 'x')), FileProblem);
  EXPECT_NO_THROW(check_path(std::string(255, 'x')));
  std::string deep;
  while (deep.size() < 4100) deep = join(deep, "folder");
  EXPECT_THROW(check_path(deep), FileProblem);
}

TEST(CopyNames, WhatUsersWrite) {
  EXPECT_EQ(relative_path("/a//b/"), "a/b");
  EXPECT_EQ(relative_path("/"), "");
  EXPECT_EQ(relative_path(""), "");
  EXPECT_EQ(relative_path("./a/./b"), "a/b");
  for (const char* bad : {"..", "/../etc", "a/../../b", "a/.."}) EXPECT_THROW(relative_path(bad), FileProblem) << bad;
}

TEST(CopyNames, PartNamesFitAndAreKnown) {
  for (const std::size_t length : {1u, 200u, 244u, 245u, 255u}) {
    const std::string part = part_name(std::string(length, 'n'));
    EXPECT_LE(part.size(), 255u);
    EXPECT_TRUE(is_part_name(part));
  }
  EXPECT_NE(part_name(std::string(254, 'n')), part_name(std::string(255, 'n')));
  EXPECT_EQ(part_name("a"), ".a.maki-part");
}

class CopyRoot : public ::testing::TestWithParam<Root::Resolve> {
 protected:
  CopyRoot() {
    write_file(here_ / "root/in/file", "inside");
    write_file(here_ / "outside/secret", "secret");
    root_ = std::make_unique<Root>((here_ / "root").string(), GetParam());
  }
  void link(const std::string& target, const std::string& name) { fs::create_symlink(target, here_ / "root" / name); }
  void expect_closed(const std::string& path) {
    struct stat status;
    EXPECT_THROW(root_->open_file(path, status), FileProblem) << path;
    EXPECT_THROW(root_->folder(parent_of(path)), FileProblem) << path;
    EXPECT_THROW(root_->make_folders(parent_of(path)), FileProblem) << path;
    EXPECT_THROW(root_->open_folder(parent_of(path)), FileProblem) << path;
  }
  Scratch here_;
  std::unique_ptr<Root> root_;
};

TEST_P(CopyRoot, OpensWhatIsInside) {
  struct stat status;
  EXPECT_TRUE(root_->open_file("in/file", status).open());
  EXPECT_EQ(status.st_size, 6);
  EXPECT_TRUE(root_->make_folders("x/y/z")->open());
  EXPECT_TRUE(fs::is_directory(here_ / "root/x/y/z"));
  EXPECT_FALSE(root_->look("none", status));
  EXPECT_FALSE(root_->look("none/at/all", status));
  EXPECT_THROW(root_->folder("none"), FileProblem);
  EXPECT_THROW(Root((here_ / "nothing").string()), Error);
}

TEST_P(CopyRoot, LinksThatLeadOutAreRefused) {
  link((here_ / "outside").string(), "absolute");
  link("../outside", "relative");
  link("../../../../../../../../../../..", "far");
  link("/proc/self/root", "magic");
  for (const char* path : {"absolute/secret", "relative/secret", "far/etc/passwd", "magic/etc/passwd"})
    expect_closed(path);
  const std::string error = test::error_of<FileProblem>([&] { root_->open_folder("relative"); });
  EXPECT_EQ(error.find("cross-device"), std::string::npos) << error << ": as the kernel has it";
  EXPECT_FALSE(fs::exists(here_ / "outside/new"));
  EXPECT_THROW(root_->make_folders("absolute/new"), FileProblem);
  EXPECT_FALSE(fs::exists(here_ / "outside/new"));
}

TEST_P(CopyRoot, ALinkAsTheFileItselfIsRefused) {
  link((here_ / "outside/secret").string(), "s");
  link("in/file", "t");
  struct stat status;
  EXPECT_THROW(root_->open_file("s", status), FileProblem);
  EXPECT_THROW(root_->open_file("t", status), FileProblem);
}

TEST_P(CopyRoot, DotsThatReachTheKernelAreRefusedToo) {
  // Names are checked before; should one slip through, the kernel's rule holds (by parts there is only the check).
  if (GetParam() == Root::Resolve::kByParts) GTEST_SKIP() << "by parts, names are checked only";
  EXPECT_THROW(root_->open_folder("../outside"), FileProblem);
  EXPECT_THROW(root_->open_folder("in/../../outside"), FileProblem);
  EXPECT_THROW(root_->open_folder((here_ / "outside").string()), FileProblem);
}

TEST_P(CopyRoot, SpecialFilesAreRefused) {
  ASSERT_EQ(mkfifo((here_ / "root/pipe").c_str(), 0600), 0);
  const int listening = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", (here_ / "root/socket").c_str());
  ASSERT_EQ(bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(listening);
  struct stat status;
  for (const char* name : {"pipe", "socket", "in"}) EXPECT_THROW(root_->open_file(name, status), FileProblem) << name;
}

// A folder is replaced by a link to the outside, and back, as fast as it goes, while files are opened and folders made
// below it.
TEST_P(CopyRoot, ALinkSwappedIn) {
  fs::create_directories(here_ / "root/swap");
  write_file(here_ / "root/swap/secret", "inside");
  link((here_ / "outside").string(), "link");
  const std::string a = here_ / "root/swap", b = here_ / "root/link";
  const std::jthread swapping([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
  });
  int opened = 0, tries = 0;
  const auto enough = [&] {
    const Root fresh(root_->folder(""), GetParam());  // knows no folders yet
    struct stat status;
    try {
      const Descriptor file = fresh.open_file("swap/secret", status);
      char text[8] = {};
      EXPECT_EQ(read(file.descriptor(), text, 6), 6);
      EXPECT_STREQ(text, "inside");
      ++opened;
    } catch (const FileProblem&) {
    }
    try {
      fresh.make_folders("swap/made");
    } catch (const FileProblem&) {
    }
    return ++tries >= 3000 && opened > 0;
  };
  const auto end = WallClock::now() + std::chrono::seconds(40);
  while (!enough() && WallClock::now() < end) {
  }
  EXPECT_GT(opened, 0);
  EXPECT_FALSE(fs::exists(here_ / "outside/made"));
}

INSTANTIATE_TEST_SUITE_P(Ways, CopyRoot, ::testing::Values(Root::Resolve::kBest, Root::Resolve::kByParts),
                         [](const auto& way) { return way.param == Root::Resolve::kBest ? "Kernel" : "ByParts"; });

}  // namespace
}  // namespace maki::wan::copy
