#include "src/io/safe_file.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "src/io/run_directory.hpp"
#include "src/simulation/run_files.hpp"
#include "src/simulation/step_log.hpp"
#include "tests/small_disk.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using namespace test;
using SafeFiles = InTempDir;
using EnsureOutputDirectory = InTempDir;
using DirectoryLocks = InTempDir;
using DirectoryOfARun = InTempDir;

TEST_F(SafeFiles, AppearsWhenCommitted) {
  SafeFile file(dir / "a.txt");
  file.write("one ");
  file.write("two");
  EXPECT_FALSE(std::filesystem::exists(dir / "a.txt"));
  file.commit();
  EXPECT_EQ(text_of(dir / "a.txt"), "one two");
  EXPECT_EQ(dir.entries(), 1u);
}

TEST_F(SafeFiles, LeavesNothingWhenAbandoned) {
  {
    SafeFile file(dir / "a.txt");
    file.write("half");
    EXPECT_EQ(dir.entries(), 1u);
  }
  EXPECT_EQ(dir.entries(), 0u);
}

TEST_F(SafeFiles, MovesWithItsTemporaryFile) {
  SafeFile first(dir / "a.txt");
  SafeFile second(std::move(first));
  second.write("x");
  second.commit();
  EXPECT_EQ(text_of(dir / "a.txt"), "x");
}

TEST_F(SafeFiles, RefusesToReplaceUnlessTold) {
  std::ofstream(dir / "a.txt") << "old";
  expect_error([&] { SafeFile file(dir / "a.txt"); }, {"a.txt", "exists", "overwriting"});
  EXPECT_EQ(text_of(dir / "a.txt"), "old");
  SafeFile file(dir / "a.txt", true);
  file.write("new");
  file.commit();
  EXPECT_EQ(text_of(dir / "a.txt"), "new");
  EXPECT_EQ(dir.entries(), 1u);
}

TEST_F(SafeFiles, ReplacesTheFileOfALinkAndNoPipe) {
  std::ofstream(dir / "a.txt") << "old";
  std::filesystem::create_symlink("a.txt", dir / "link");
  SafeFile file(dir / "link", true);
  file.write("new");
  file.commit();
  EXPECT_EQ(text_of(dir / "a.txt"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "link"));
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  expect_error([&] { SafeFile pipe(dir / "pipe", true); }, {"pipe", "is a device or a pipe"});
}

TEST_F(SafeFiles, DoesNotReplaceAFileThatAppearedMeanwhile) {
  {
    SafeFile file(dir / "a.txt");
    std::ofstream(dir / "a.txt") << "other";
    expect_error([&] { file.commit(); }, {"a.txt", "exists"});
  }
  EXPECT_EQ(text_of(dir / "a.txt"), "other");
  EXPECT_EQ(dir.entries(), 1u);
}

TEST_F(SafeFiles, SaysWhyTheDirectoryWillNotDo) {
  expect_error([&] { SafeFile file(dir / "none/a.txt"); },
               {"cannot write", "none/a.txt", "No such file or directory", "make the directory"});
  std::ofstream(dir / "file") << "x";
  expect_error([&] { SafeFile file(dir / "file/a.txt"); }, {"Not a directory"});
  expect_error([&] { SafeFile file(dir.path()); }, {"it is a directory"});
}

// Root may write anywhere, and gives up its rights for a while.
TEST_F(SafeFiles, SaysThatADirectoryIsNotWritable) {
  ASSERT_EQ(chmod(dir.path().c_str(), 0555), 0);
  const bool root = geteuid() == 0;
  if (root) {
    ASSERT_EQ(setresuid(65534, 65534, 0), 0);
  }
  const std::string file = error_of([&] { SafeFile output(dir / "a.txt"); });
  const std::string directory = error_of([&] { ensure_output_directory(dir.path()); });
  if (root) {
    ASSERT_EQ(setresuid(0, 0, 0), 0);
  }
  expect_contains(file, {"cannot write '", "a.txt", "(Permission denied)", "is not writable; change its permissions"});
  expect_contains(directory, {"cannot write to the output directory '"});
  chmod(dir.path().c_str(), 0755);
}

TEST_F(EnsureOutputDirectory, MakesParentsAndAcceptsWhatIsThere) {
  ensure_output_directory(dir / "a/b/c");
  ensure_output_directory(dir / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(dir / "a/b/c"));
}

TEST_F(EnsureOutputDirectory, RefusesAFileInTheWay) {
  std::ofstream(dir / "out") << "x";
  expect_error([&] { ensure_output_directory(dir / "out"); }, {"out", "a file has that name", "remove"});
  expect_error([&] { ensure_output_directory(dir / "out/deeper"); }, {"out/deeper", "Not a directory"});
}

TEST_F(DirectoryLocks, IsHeldByOneAndLeavesNothing) {
  EXPECT_EQ(is_locked(dir / ""), std::nullopt) << "it may have been removed";
  std::ofstream(dir / ".maki.lock").close();  // of a process that was killed
  EXPECT_EQ(is_locked(dir / ""), false);
  std::optional<DirectoryLock> first(dir / "");
  EXPECT_EQ(is_locked(dir / ""), true);
  expect_error([&] { DirectoryLock second(dir / ""); },
               {"in use", "another run", fmt::format("process {} on", getpid()), "output_directory", ".maki.lock"});
  first.reset();
  EXPECT_NO_THROW(DirectoryLock(dir / ""));
  EXPECT_EQ(dir.entries(), 0u);
}

TEST_F(DirectoryLocks, KeepsARunOutOfADirectoryInUse) {
  const RunFileOptions options{.directory = dir / "", .overwrite = true, .progress = nullptr};
  {
    DirectoryLock other(options.directory);
    std::ofstream(dir / "stop") << "for the other one";
    expect_error([&] { RunFiles files(options, {}); }, {"in use"});
    EXPECT_TRUE(std::filesystem::exists(dir / "stop"));
  }
  EXPECT_NO_THROW(RunFiles(options, {}));
}

// A directory that is renamed or removed while a run writes to it.

struct ToldRun : RunFiles {
  ToldRun(const std::string& directory, const std::string& name)
      : RunFiles({.directory = directory, .run = name, .progress = nullptr}, {}) {}
  void message(const std::string& text) override {
    told += text;
    RunFiles::message(text);
  }
  void step() { RunFiles::step({}, PhaseTimers()); }
  std::string told;
};

TEST_F(DirectoryOfARun, ThatIsRenamedIsNotSoughtInItsSuccessor) {
  std::optional<ToldRun> first(std::in_place, dir / "run", "first");
  first->step();
  std::filesystem::rename(dir / "run", dir / "old");
  std::optional<ToldRun> second(std::in_place, dir / "run", "second");
  const auto refused = [&] {
    const std::string error = error_of([&] { first->step(); });
    expect_contains(error, {"' is the directory of another run", "renamed to '", "/old"});
    first->fail(error);
  };
  refused();  // the second has made no file yet
  second->step();
  const std::string log = text_of(dir / "run/log.txt");
  std::ofstream(dir / "run/stop") << "for the second";
  first.reset();
  EXPECT_EQ(text_of(dir / "run/log.txt"), log);
  EXPECT_TRUE(std::filesystem::exists(dir / "run/stop"));
  EXPECT_EQ(is_locked(dir / "run"), true);
  expect_contains(text_of(dir / "old/log.txt"), {"The run ends by an error", "another run"});
  second.reset();
  first.emplace(dir / "third", "third");
  first->step();
  std::filesystem::rename(dir / "third", dir / "old_third");
  std::filesystem::rename(dir / "run", dir / "third");
  refused();  // the second has ended
}

TEST_F(DirectoryOfARun, ThatIsGoneIsMadeAgain) {
  ToldRun run(dir / "run", "mine");
  run.step();
  std::filesystem::remove_all(dir / "run");
  run.step();
  expect_contains(run.told, {"run' was removed while the run wrote to it"});
  std::filesystem::rename(dir / "run", dir / "old");
  run.step();
  expect_contains(run.told, {"run' was renamed to '", "/old'"});
  for (const std::string& folder : {dir / "old", dir / "run"}) {
    EXPECT_EQ(run_in(folder).name, "mine");
    expect_contains(text_of(folder + "/log.txt"), {"# compiler", "while the run wrote to it", "E error"});
  }
  EXPECT_EQ(is_locked(dir / "run"), true);
}

TEST_F(DirectoryOfARun, IsLockedAgainWhereTheLockFileWasRemoved) {
  ToldRun run(dir / "run", "mine");
  run.step();
  std::filesystem::remove(dir / "run/.maki.lock");
  run.step();
  expect_contains(run.told, {"The lock file of '"});
  EXPECT_EQ(is_locked(dir / "run"), true);
  std::filesystem::remove(dir / "run/.maki.lock");
  const DirectoryLock other(dir / "run");
  expect_error([&] { run.step(); }, {"another run", "or its lock file was"});
}

TEST(LineFile, GoesOnInTheFileThatHasItsName) {
  TempDir dir;
  LineFile file(dir / "log.txt");
  file.add("one");
  EXPECT_FALSE(file.reopen("head\n"));
  std::filesystem::rename(dir / "log.txt", dir / "log.txt.1");
  EXPECT_TRUE(file.reopen("head\n"));
  file.add("two");
  EXPECT_EQ(text_of(dir / "log.txt"), "head\ntwo\n");
  std::filesystem::rename(dir / "log.txt.1", dir / "log.txt");
  EXPECT_TRUE(file.reopen("head\n"));
  file.add("three");
  EXPECT_EQ(text_of(dir / "log.txt"), "one\nthree\n");
}

// A disk that fills up. (Snapshots on one: snapshot_ranks_test.)

std::string add_lines(LineFile& file) {
  std::string all;
  for (int i = 0; i < 500; ++i) {
    const std::string line = "line " + std::to_string(i) + " after the disk was full";
    file.add(line);
    all += line + '\n';
  }
  return all;
}

TEST(DiskThatIsFull, LinesWaitUntilThereIsRoom) {
  TempDir dir;
  const SmallDisk disk(dir.path());
  if (!disk) GTEST_SKIP() << "mounting a small file system needs root";
  const std::string path = dir / "log.txt";
  LineFile file(path);
  file.add("first");
  EXPECT_EQ(file.news(), "");
  disk.fill();
  const std::string all = "first\n" + add_lines(file);
  EXPECT_LT(text_of(path).size(), all.size());
  expect_contains(file.news(), {"cannot write", path.c_str(), "No space left on device", "wait in memory"});
  EXPECT_EQ(file.news(), "") << "is told once";
  expect_error([&] { file.settle(); }, {"cannot write", path.c_str(), "lines at its end are missing"});
  disk.clear();
  file.add("last");
  EXPECT_EQ(text_of(path), all + "last\n");
  expect_contains(file.news(), {path.c_str(), "has all its lines"});
  EXPECT_EQ(error_of([&] { file.settle(); }), "");
}

TEST(DiskThatIsFull, AFileThatIsOpenedAnewBeginsWithAWholeLine) {
  TempDir dir;
  const SmallDisk disk(dir.path());
  if (!disk) GTEST_SKIP() << "mounting a small file system needs root";
  const std::string path = dir / "log.txt";
  LineFile file(path);
  file.add("first");
  disk.fill();
  const std::string all = "first\n" + add_lines(file);
  std::filesystem::rename(path, path + ".1");
  disk.clear();
  EXPECT_TRUE(file.reopen("head\n"));
  const std::string before = text_of(path + ".1");
  EXPECT_NE(before.back(), '\n') << "half a line was written";
  EXPECT_EQ(text_of(path), "head\n" + all.substr(before.rfind('\n') + 1));
}

TEST(DiskThatIsFull, SomeLinesWaitAndNoMore) {
  LineFile file("/dev/full");
  const std::string line(LineFile::most_waiting / 2, 'x');
  file.add(line);
  expect_error([&] { file.add(line); }, {"cannot write", "/dev/full", "2 lines", "see whether the disk"});
}

}  // namespace
}  // namespace maki
