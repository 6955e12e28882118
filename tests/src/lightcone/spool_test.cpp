#include "src/lightcone/spool.hpp"

#include <gtest/gtest.h>

#include "kernels/error.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using test::TempDir;

std::vector<ShellParticle> particles(std::uint64_t first, std::uint64_t count) {
  std::vector<ShellParticle> all;
  for (std::uint64_t id = first; id < first + count; ++id)
    all.push_back({{static_cast<double>(id), 2, 3}, {4, 5, 6}, 7, id, 0.5});
  return all;
}

TEST(Spool, GivesBackWhatWasAppended) {
  const TempDir folder;
  const std::string path = folder / spool::name_of(3, 2);
  std::vector<ShellParticle> all;
  spool::read(path, all);
  EXPECT_TRUE(all.empty()) << "no file, no particles";
  spool::append(path, particles(0, 10));
  spool::append(path, {});
  spool::append(path, particles(10, 5));
  spool::sync(path);
  spool::read(path, all);
  ASSERT_EQ(all.size(), 15u);
  for (std::uint64_t i = 0; i < 15; ++i) EXPECT_EQ(all[i].id, i);
}

TEST(Spool, IsCutBackToAnEarlierLength) {
  const TempDir folder;
  const std::string path = folder / spool::name_of(0, 0);
  spool::append(path, particles(0, 10));
  const std::uint64_t then = spool::bytes(path);
  spool::append(path, particles(10, 5));
  spool::cut(path, then);
  spool::append(path, particles(20, 1));
  std::vector<ShellParticle> all;
  spool::read(path, all);
  ASSERT_EQ(all.size(), 11u);
  EXPECT_EQ(all.back().id, 20u);
  spool::cut(path, 0);
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(Spool, NamesTellShellAndRank) {
  EXPECT_EQ(spool::name_of(3, 2), "conesnap_003.2.spool");
  EXPECT_EQ(spool::shell_of("conesnap_003.2.spool"), 3);
  EXPECT_EQ(spool::rank_of("conesnap_1234.17.spool"), 17);
  for (const char* other : {"conesnap_003.hdf5", "conesnap_003.2.spool.old", "state_000001.0.hdf5"})
    EXPECT_EQ(spool::rank_of(other), -1) << other;
}

TEST(Spool, AFolderThatIsMissingIsAnError) {
  const TempDir folder;
  EXPECT_THROW(spool::append(folder / "none/conesnap_000.0.spool", particles(0, 1)), Error);
}

}  // namespace
}  // namespace maki
