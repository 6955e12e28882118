#include "src/io/directory_lock.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "src/simulation/run_files.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using test::error_of;
using test::expect_contains;
using test::TempDir;

TEST(DirectoryLock, IsHeldByOneAndLeavesNothing) {
  TempDir dir;
  std::optional<DirectoryLock> first(dir / "");
  expect_contains(error_of([&] { DirectoryLock second(dir / ""); }), {"in use", "another run", "output_directory"});
  EXPECT_EQ(dir.entries(), 0u);
  first.reset();
  EXPECT_NO_THROW(DirectoryLock(dir / ""));
}

TEST(DirectoryLock, KeepsARunOutOfADirectoryInUse) {
  TempDir dir;
  RunFileOptions options;
  options.directory = dir / "";
  options.overwrite = true;
  options.progress = nullptr;
  {
    DirectoryLock other(options.directory);
    std::ofstream(dir / "stop") << "for the other one";
    expect_contains(error_of([&] { RunFiles files(options, {}); }), {"in use"});
    EXPECT_TRUE(std::filesystem::exists(dir / "stop"));
  }
  EXPECT_NO_THROW(RunFiles(options, {}));
}

}  // namespace
}  // namespace maki
