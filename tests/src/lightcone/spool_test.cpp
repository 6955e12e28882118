#include "src/lightcone/cone_state.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "kernels/error.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using test::TempDir;

spool::Mark mark_of(const std::vector<ShellParticle>& records) {
  spool::RunningMark running;
  running.add(records);
  return running.mark();
}

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
  spool::read(path, mark_of({}), all);
  EXPECT_TRUE(all.empty()) << "no file, no particles";
  spool::append(path, particles(0, 10));
  spool::append(path, {});
  spool::append(path, particles(10, 5));
  spool::sync(path);
  spool::read(path, mark_of(particles(0, 15)), all);
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
  std::vector<ShellParticle> all, wanted = particles(0, 10);
  wanted.push_back(particles(20, 1).front());
  spool::read(path, mark_of(wanted), all);
  ASSERT_EQ(all.size(), 11u);
  EXPECT_EQ(all.back().id, 20u);
  spool::cut(path, 0);
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(Spool, AMarkMovesOnWhereASpoolIsOpenedAgain) {
  const TempDir folder;
  const std::string path = folder / spool::name_of(0, 0);
  spool::append(path, particles(0, 15));
  spool::RunningMark again = spool::reopen(path, mark_of(particles(0, 10)));
  EXPECT_EQ(again.mark(), mark_of(particles(0, 10))) << "what follows is not looked at";
  again.add(particles(10, 5));
  EXPECT_EQ(again.mark(), mark_of(particles(0, 15)));
  EXPECT_EQ(spool::reopen(folder / "none", {}).mark(), mark_of({}));
}

TEST(Spool, AFlippedBitAndACutEndAreNoticed) {
  const TempDir folder;
  const std::string path = folder / spool::name_of(0, 0);
  spool::append(path, particles(0, 200000));  // 11 MB, several blocks
  const spool::Mark all = mark_of(particles(0, 200000));
  std::vector<ShellParticle> found;
  const auto expect_error = [&](const spool::Mark& mark, const char* word) {
    for (const auto& use : {std::function<void()>([&] { spool::reopen(path, mark); }),
                            std::function<void()>([&] { spool::read(path, mark, found); })}) {
      try {
        use();
        ADD_FAILURE() << "no error";
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
      }
    }
  };
  std::fstream bytes(path, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekg(9000000);
  const char byte = static_cast<char>(bytes.get() ^ 4);
  bytes.seekp(9000000);
  bytes.put(byte);
  bytes.close();
  expect_error(all, "damaged");
  EXPECT_EQ(spool::reopen(path, mark_of(particles(0, 100))).mark().bytes, 5600u) << "an earlier part is whole";
  spool::cut(path, 5600);
  expect_error(all, "cut off");
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
