// A disk that fills up gives an Error and leaves nothing behind.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>

#include "src/io/snapshot_io.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using test::error_of;
using test::expect_contains;
using test::make_snapshot;
using test::TempDir;

const std::initializer_list<WriteOptions> kKinds = {{},
                                                    {.deflate = 1},
                                                    {.files = 2},
                                                    {.format = SnapshotFormat::kGadgetBinary1},
                                                    {.format = SnapshotFormat::kGadgetBinary2, .files = 2}};

// A file system of 1 MiB, where we may mount one.
TEST(DiskThatIsFull, LeavesNoPartialFile) {
  TempDir dir;
  if (mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "mounting a small file system needs root; FileSizeLimit covers the same path";
  }
  for (const auto& options : kKinds) {
    const auto text = error_of([&] { write_snapshot(dir / "s.hdf5", make_snapshot(100000), {}, options); });
    expect_contains(text, {"cannot write", (dir / "s.").c_str(), "No space left on device", "free space"});
    EXPECT_EQ(dir.entries(), 0u);
  }
  EXPECT_EQ(error_of([&] { write_snapshot(dir / "s.hdf5", make_snapshot(1000), {}); }), "");
  umount(dir.path().c_str());
}

// The limit on file sizes fails in the same calls, without root. In a child, because limits stay.
TEST(DiskThatIsFull, FileSizeLimit) {
  TempDir dir;
  const std::string text = test::in_child([&]() -> std::string {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return "no limit";
    std::string errors;
    for (const auto& options : kKinds) {
      errors += error_of([&] { write_snapshot(dir / "s.hdf5", make_snapshot(100000), {}, options); }) + "\n";
      if (dir.entries() != 0) errors += "something was left behind";
    }
    return errors;
  });
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find("(File too large): raise the limit", at)) != std::string::npos; ++at)
    ++found;
  EXPECT_EQ(found, kKinds.size()) << text;
  EXPECT_EQ(text.find("something was left"), std::string::npos) << text;
  EXPECT_EQ(text.find("died"), std::string::npos) << text;
}

}  // namespace
}  // namespace maki
