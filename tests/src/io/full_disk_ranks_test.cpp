// A disk that fills up, or fails for one of the ranks, gives all ranks one Error and leaves nothing behind.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>

#include "tests/src/io/shares_ranks.hpp"

namespace maki {
namespace {

using test::error_of;
using test::expect_contains;
using test::make_snapshot;

class FullDiskRanks : public testing::Test {
 protected:
  const Communicator ranks = Communicator::world();
  const test::SharedDir dir{ranks};
  const Snapshot all = make_snapshot(100000);
  const Snapshot own = test::rows_of(all, share_begin(all.size(), ranks.rank(), ranks.size()),
                                     share_begin(all.size(), ranks.rank() + 1, ranks.size()));
  const std::vector<WriteOptions> kinds{{},
                                        {.deflate = 1},
                                        {.files = 2},
                                        {.format = SnapshotFormat::kGadgetBinary1},
                                        {.format = SnapshotFormat::kGadgetBinary2, .files = 2}};

  // The message, which is the same on all ranks.
  std::string write(const WriteOptions& options) const {
    const std::string text = error_of([&] { write_snapshot(dir / "s", own, {}, options, {}, ranks); });
    for (const std::string& other : gather_texts(ranks, text)) EXPECT_EQ(text, other);
    EXPECT_TRUE(text.empty() || dir.entries() == 0);
    ranks.barrier();
    return text;
  }
};

TEST_F(FullDiskRanks, FailTogether) {
  const bool mounted = ranks.rank() == 0 && mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=1m") == 0;
  if (broadcast_text(ranks, mounted ? "yes" : "") != "yes") {
    GTEST_SKIP() << "mounting a small file system needs root; OneRankMayNotWrite covers the same path";
  }
  for (const auto& options : kinds) {
    expect_contains(write(options), {"cannot write", (dir / "s").c_str(), "No space left on device", "free space"});
  }
  if (mounted) umount(dir.path().c_str());
}

TEST_F(FullDiskRanks, OneRankMayNotWrite) {
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  for (const int rank : {0, ranks.size() - 1}) {
    for (const auto& options : kinds) {
      if (options.deflate > 0 && rank > 0) continue;  // rank 0 writes for all
      const rlimit small{200000, limit.rlim_max};
      if (ranks.rank() == rank) setrlimit(RLIMIT_FSIZE, &small);
      const std::string text = write(options);
      setrlimit(RLIMIT_FSIZE, &limit);
      expect_contains(text, {"cannot write", (dir / "s").c_str(), "(File too large)", "raise the limit"});
    }
  }
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(write({}), "");
}

}  // namespace
}  // namespace maki
