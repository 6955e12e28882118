// Restarts that other numbers of ranks read than wrote them.
#include <gtest/gtest.h>

#include "tests/small_disk.hpp"
#include "tests/src/io/restart_state.hpp"

namespace maki {
namespace {

using namespace test;

constexpr std::uint32_t kParticles = 1001, kEscapers = 7;

class RestartRanks : public InSharedDir {
 protected:
  // Those of the first `size` ranks; of the others some communicator too.
  Communicator first(int size) const { return world.split(world.rank() < size ? 0 : 1, world.rank()); }
  bool is_in(int size) const { return world.rank() < size; }

  static std::uint32_t begin(std::uint32_t n, int rank, int ranks) {
    return static_cast<std::uint32_t>(share_begin(n, rank, ranks));
  }
  // Uneven: the first rank has nothing.
  static std::uint32_t uneven(std::uint32_t n, int rank, int ranks) {
    return rank == 0 || ranks == 1 ? begin(n, rank, ranks) : begin(n, rank - 1, ranks - 1);
  }
  // Every second one within a long step.
  static ParticleRows rows_of(std::uint64_t step, std::uint32_t begin, std::uint32_t end) {
    return step % 2 == 0 ? within_long_step(particle_rows(begin, end)) : particle_rows(begin, end);
  }
  void write_with(int writers, std::uint64_t step) const {
    const Communicator ranks = first(writers);
    const int r = world.rank();
    if (is_in(writers))
      write_restart(dir.path(), info_of_step(step), some_numbers(),
                    {rows_of(step, uneven(kParticles, r, writers), uneven(kParticles, r + 1, writers)),
                     escaper_rows(uneven(kEscapers, r, writers), uneven(kEscapers, r + 1, writers))},
                    2, ranks);
    world.barrier();
  }
};

TEST_F(RestartRanks, AnyNumberReadsIt) {
  std::uint64_t step = 0;
  for (int writers = 1; writers <= world.size(); ++writers) {
    write_with(writers, ++step);
    for (int readers = 1; readers <= world.size(); ++readers) {
      const Communicator ranks = first(readers);
      if (is_in(readers)) {
        const Restart back = read_restart(find_restarts(dir.path(), ranks).back(), ranks);
        const int r = world.rank();
        const auto from = readers == writers ? uneven : begin;
        EXPECT_EQ(back.info.step, step);
        EXPECT_EQ(back.info.particles.size(), static_cast<std::size_t>(writers));
        EXPECT_EQ(back.numbers, some_numbers());
        EXPECT_TRUE(
            same_bits(back.particles, rows_of(step, from(kParticles, r, readers), from(kParticles, r + 1, readers))));
        EXPECT_TRUE(
            same_bits(back.escapers, escaper_rows(from(kEscapers, r, readers), from(kEscapers, r + 1, readers))));
      }
      world.barrier();
    }
  }
}

TEST_F(RestartRanks, OneRankThatCannotWriteFailsAll) {
  write_with(world.size(), 1);
  const int r = world.rank();
  const std::string text = error_of([&] {
    const SmallFiles small(20000, r == world.size() - 1);
    write_restart(dir.path(), info_of_step(2), some_numbers(),
                  {particle_rows(static_cast<std::uint32_t>(r) * 5000, static_cast<std::uint32_t>(r + 1) * 5000), {}},
                  2, world);
  });
  for (const std::string& other : gather_texts(world, text)) EXPECT_EQ(text, other);
  expect_contains(text, {"cannot write", "File too large", "raise the limit"});
  world.barrier();
  EXPECT_EQ(dir.entries(), 1u);
  const RestartInfo former = find_restarts(dir.path(), world).back();
  EXPECT_EQ(former.step, 1u);
  EXPECT_NO_THROW(read_restart(former, world)) << "it is whole";
  world.barrier();
}

}  // namespace
}  // namespace maki
