#include "src/io/safe_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using test::error_of;
using test::expect_contains;
using test::TempDir;

std::string contents(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(SafeFile, AppearsWhenCommitted) {
  TempDir dir;
  SafeFile file(dir / "a.txt");
  file.write("one ");
  file.write("two");
  EXPECT_FALSE(std::filesystem::exists(dir / "a.txt"));
  file.commit();
  EXPECT_EQ(contents(dir / "a.txt"), "one two");
  EXPECT_EQ(dir.entries(), 1u);
}

TEST(SafeFile, LeavesNothingWhenAbandoned) {
  TempDir dir;
  {
    SafeFile file(dir / "a.txt");
    file.write("half");
    EXPECT_EQ(dir.entries(), 1u);
  }
  EXPECT_EQ(dir.entries(), 0u);
}

TEST(SafeFile, MovesWithItsTemporaryFile) {
  TempDir dir;
  SafeFile first(dir / "a.txt");
  SafeFile second(std::move(first));
  second.write("x");
  second.commit();
  EXPECT_EQ(contents(dir / "a.txt"), "x");
}

TEST(SafeFile, RefusesToReplaceUnlessTold) {
  TempDir dir;
  std::ofstream(dir / "a.txt") << "old";
  expect_contains(error_of([&] { SafeFile file(dir / "a.txt"); }), {"a.txt", "exists", "overwriting"});
  EXPECT_EQ(contents(dir / "a.txt"), "old");
  SafeFile file(dir / "a.txt", true);
  file.write("new");
  file.commit();
  EXPECT_EQ(contents(dir / "a.txt"), "new");
  EXPECT_EQ(dir.entries(), 1u);
}

TEST(SafeFile, DoesNotReplaceAFileThatAppearedMeanwhile) {
  TempDir dir;
  {
    SafeFile file(dir / "a.txt");
    std::ofstream(dir / "a.txt") << "other";
    expect_contains(error_of([&] { file.commit(); }), {"a.txt", "exists"});
  }
  EXPECT_EQ(contents(dir / "a.txt"), "other");
  EXPECT_EQ(dir.entries(), 1u);
}

TEST(SafeFile, SaysWhyTheDirectoryWillNotDo) {
  TempDir dir;
  expect_contains(error_of([&] { SafeFile file(dir / "none/a.txt"); }),
                  {"cannot write", "none/a.txt", "No such file or directory", "make the directory"});
  std::ofstream(dir / "file") << "x";
  expect_contains(error_of([&] { SafeFile file(dir / "file/a.txt"); }), {"Not a directory"});
  expect_contains(error_of([&] { SafeFile file(dir.path()); }), {"it is a directory"});
}

// Root may write anywhere, so a child gives up its rights first.
TEST(SafeFile, SaysThatADirectoryIsNotWritable) {
  TempDir dir;
  ASSERT_EQ(chmod(dir.path().c_str(), 0555), 0);
  const std::string text = test::in_child([&]() -> std::string {
    if (geteuid() == 0 && setuid(65534) != 0) return "still root";
    return error_of([&] { SafeFile output(dir / "a.txt"); }) + "\n" +
           error_of([&] { ensure_output_directory(dir.path()); });
  });
  expect_contains(text, {"cannot write '", "a.txt", "(Permission denied)", "is not writable; change its permissions",
                         "cannot write to the output directory '"});
  chmod(dir.path().c_str(), 0755);
}

TEST(EnsureOutputDirectory, MakesParentsAndAcceptsWhatIsThere) {
  TempDir dir;
  ensure_output_directory(dir / "a/b/c");
  ensure_output_directory(dir / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(dir / "a/b/c"));
}

TEST(EnsureOutputDirectory, RefusesAFileInTheWay) {
  TempDir dir;
  std::ofstream(dir / "out") << "x";
  expect_contains(error_of([&] { ensure_output_directory(dir / "out"); }), {"out", "a file has that name", "remove"});
  expect_contains(error_of([&] { ensure_output_directory(dir / "out/deeper"); }), {"out/deeper", "Not a directory"});
}

}  // namespace
}  // namespace maki
