#include "host/domain/migrate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "tests/host/domain/sets_ranks.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

constexpr std::uint64_t kParticles = 5000;

class Migrate : public testing::Test {
 protected:
  const Stream& stream = test::test_stream();
  // A communicator of its own, so that only what the test sends is counted.
  const Communicator ranks = Communicator::world().split(0, Communicator::world().rank());
  const int rank = ranks.rank(), size = ranks.size();
  Domains domains{choose_factors(size)};
  Particles particles;
  std::vector<DeviceBuffer<float>> extra;

  void make(const std::vector<std::uint64_t>& ids) { test::make_particles(stream, ids, particles, extra); }
  Migration move() {
    DeviceBuffer<float>* const arrays[] = {&extra[0], &extra[1]};
    return migrate(stream, ranks, domains, particles, arrays);
  }

  // None lost, none doubled, each at home and with its fields.
  void expect_all_at_home() {
    test::expect_fields_of_ids(stream, particles, extra);
    std::vector<std::uint64_t> seen(kParticles, 0);
    for (const std::uint64_t id : particles.id.download(stream)) {
      ASSERT_LT(id, kParticles);
      ++seen[id];
    }
    ranks.sum(seen);
    EXPECT_EQ(std::ranges::count(seen, 1u), static_cast<std::ptrdiff_t>(kParticles));
    for (const SourceParticle& p : particles.source.download(stream))
      ASSERT_EQ(domains.rank_of(p.x, p.y, p.z), static_cast<std::uint32_t>(rank));
  }
  std::vector<std::uint64_t> ids_of(auto owner) const {
    std::vector<std::uint64_t> ids;
    for (std::uint64_t id = 0; id < kParticles; ++id)
      if (owner(id) == rank) ids.push_back(id);
    return ids;
  }
  int home(std::uint64_t id) const {
    const SourceParticle p = test::fields_of(id).source;
    return static_cast<int>(domains.rank_of(p.x, p.y, p.z));
  }
};

TEST_F(Migrate, BringsAllHomeFromOneRank) {
  make(ids_of([](std::uint64_t) { return 0; }));
  const Migration moved = move();
  expect_all_at_home();
  if (rank > 0) {
    EXPECT_EQ(moved.received, particles.size());
    EXPECT_EQ(moved.messages, 0u);
  } else {
    EXPECT_EQ(moved.sent, kParticles - particles.size());
    EXPECT_EQ(moved.messages, static_cast<std::uint64_t>(size - 1));
    EXPECT_EQ(moved.bytes, moved.sent * 50);
  }
}

TEST_F(Migrate, BringsAllHomeFromAnywhere) {
  make(ids_of([this](std::uint64_t id) { return static_cast<int>(test::hash(id, 20) % size); }));
  const Migration moved = move();
  expect_all_at_home();
  const Communicator::Traffic traffic = ranks.traffic();
  EXPECT_EQ(traffic.messages, moved.messages);
  EXPECT_EQ(traffic.bytes, moved.bytes);
  EXPECT_EQ(traffic.empty, 0u);
}

TEST_F(Migrate, SendsNothingWhereNothingMoves) {
  make(ids_of([this](std::uint64_t id) { return home(id); }));
  const std::vector<std::uint64_t> before = particles.id.download(stream);
  const Communicator::Traffic traffic = ranks.traffic();
  const Migration moved = move();
  EXPECT_EQ(ranks.traffic().messages, traffic.messages);
  EXPECT_EQ(moved.sent + moved.received + moved.messages + moved.bytes, 0u);
  EXPECT_EQ(particles.id.download(stream), before);
  expect_all_at_home();
}

TEST_F(Migrate, ThoseWhoStayComeFirstInTheirOrderThenArrivalsByRank) {
  const auto start = [this](std::uint64_t id) { return static_cast<int>(test::hash(id, 21) % size); };
  make(ids_of(start));
  move();
  std::vector<std::uint64_t> expected;
  const auto append_from = [&](int from) {
    for (std::uint64_t id = 0; id < kParticles; ++id)
      if (start(id) == from && home(id) == rank) expected.push_back(id);
  };
  append_from(rank);
  for (int r = 0; r < size; ++r)
    if (r != rank) append_from(r);
  EXPECT_EQ(particles.id.download(stream), expected);
}

TEST_F(Migrate, RanksBecomeEmptyAndFillAgain) {
  make(ids_of([this](std::uint64_t id) { return home(id); }));
  const Domains even = domains;
  // The first cell of each axis narrows to nothing but the last, and back.
  for (int axis = 0; axis < 3; ++axis) {
    const auto parents = static_cast<std::uint32_t>(axis == 0   ? 1
                                                    : axis == 1 ? even.factors().x
                                                                : even.factors().x * even.factors().y);
    for (std::uint32_t p = 0; p < parents; ++p) std::ranges::fill(domains.axis(axis, p), 0u);
  }
  move();
  expect_all_at_home();
  EXPECT_EQ(particles.size(), rank == size - 1 ? kParticles : 0u);
  domains = even;
  move();
  expect_all_at_home();
  EXPECT_GT(particles.size(), 0u);
}

TEST_F(Migrate, WithoutParticlesIsNoTrouble) {
  make({});
  const Migration moved = move();
  EXPECT_EQ(particles.size(), 0u);
  EXPECT_EQ(moved.messages, 0u);
}

TEST_F(Migrate, WrongArgumentsAreRefused) {
  make({1, 2, 3});
  extra[1].resize(2);
  EXPECT_THROW(move(), std::invalid_argument);
  domains = Domains({static_cast<std::uint32_t>(size + 1), 1, 1});
  EXPECT_THROW(migrate(stream, ranks, domains, particles), std::invalid_argument);
}

}  // namespace
}  // namespace maki
