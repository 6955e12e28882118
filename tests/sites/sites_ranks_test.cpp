// One site of all ranks; the other one is the far end of a ring in the first rank's memory.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "wan/sites/ring.hpp"
#include "wan/sites/sites.hpp"

namespace maki::sites {
namespace {

Message pattern(std::size_t bytes, unsigned seed) {
  Message message(bytes);
  for (std::size_t i = 0; i < bytes; ++i) message[i] = static_cast<std::byte>((i * 131 + seed * 17) >> 3);
  return message;
}

// A ring whose calls fail from some moment on.
class FailingRing : public Ring {
 public:
  FailingRing(std::unique_ptr<Ring> ring, int calls) : ring_(std::move(ring)), left_(calls) {}
  int count() const override { return ring_->count(); }
  int me() const override { return ring_->me(); }
  void send(int to, Phase phase, std::uint64_t number, Message message) override {
    look();
    ring_->send(to, phase, number, std::move(message));
  }
  void publish(Phase phase, std::uint64_t number, Message message) override {
    look();
    ring_->publish(phase, number, std::move(message));
  }
  Message receive(int from, Phase phase, std::uint64_t number) override {
    look();
    return ring_->receive(from, phase, number);
  }
  bool arrived(int from, Phase phase) override { return ring_->arrived(from, phase); }
  std::array<Traffic, kPhases> take_traffic() override { return ring_->take_traffic(); }
  void close() override { look(); }

 private:
  void look() {
    if (left_-- <= 0) throw SiteLost("site far is lost", "its path is silent");
  }
  std::unique_ptr<Ring> ring_;
  int left_;
};

struct SitesRanks : testing::Test {
  const Communicator world = Communicator::world();
  std::unique_ptr<Ring> far;  // on the first rank
  std::unique_ptr<Sites> sites;
  const std::size_t mine = 1000 + 37 * static_cast<std::size_t>(world.rank());

  void make(int calls = 1000) {
    std::unique_ptr<Ring> near;
    if (world.rank() == 0) {
      auto rings = make_memory_rings(2);
      near = std::make_unique<FailingRing>(std::move(rings[1]), calls);
      far = std::move(rings[0]);
    }
    sites = std::make_unique<Sites>(std::move(near), std::vector<std::string>{"far", "here"}, world);
  }
  template <class Call>
  std::string lost(Call&& call) {
    try {
      call();
    } catch (const SiteLost& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(SitesRanks, AllSeeWhatWasPublished) {
  make();
  EXPECT_EQ(sites->me(), 1);
  for (std::uint64_t number : {1u, 2u}) {
    const Message ours = pattern(50, 1), theirs = pattern(number == 1 ? 70 : 0, 2);
    sites->publish(Phase::kSums, number, ours);
    if (far) {
      EXPECT_EQ(far->receive(1, Phase::kSums, number), ours);
      far->publish(Phase::kSums, number, theirs);
    }
    const auto all = sites->collect(Phase::kSums, number);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0], theirs);
    EXPECT_EQ(all[1], ours);
  }
  EXPECT_THROW(sites->collect(Phase::kSums, 3), Error);  // nothing was published: the same on all ranks
}

// What this site sends is sent back to it: so every rank can compare.
TEST_F(SitesRanks, PartsOfAllRanksArriveOnAll) {
  make();
  for (std::size_t piece : {std::size_t{100}, std::size_t{1000}, Sites::kPiece}) {
    sites->set_piece(piece);
    const bool few = piece == 1000;  // most ranks have nothing
    const auto part_of = [&](int rank) {
      return pattern(few && rank != world.size() - 1 ? 0 : 1000 + 37 * static_cast<std::size_t>(rank),
                     static_cast<unsigned>(rank));
    };
    sites->send_parts(0, Phase::kTrees, 9, part_of(world.rank()));
    sites->publish_parts(Phase::kMesh, 9, part_of(world.rank()));
    if (far) {
      for (Phase phase : {Phase::kTrees, Phase::kMesh}) {
        while (far->arrived(1, phase)) far->send(1, phase, 9, far->receive(1, phase, 9));
      }
    }
    const auto all = sites->receive_parts(0, Phase::kTrees, 9);
    ASSERT_EQ(all.size(), static_cast<std::size_t>(world.size()));
    for (int rank = 0; rank < world.size(); ++rank) EXPECT_EQ(all[rank], part_of(rank)) << piece;
    const auto shares = sites->receive_shares(0, Phase::kMesh, 9);
    ASSERT_EQ(shares.size(), 1u);
    EXPECT_EQ(shares[0], part_of(world.rank()));
  }
}

// From a site with more ranks: part p is for rank p mod size. Its sites are made by hand here.
TEST_F(SitesRanks, SharesGoAround) {
  make();
  const int parts = 2 * world.size() + 1;
  std::vector<std::uint64_t> sizes;
  Message whole;
  for (int p = 0; p < parts; ++p) {
    const Message part = pattern(100 + 10 * static_cast<std::size_t>(p), static_cast<unsigned>(p));
    sizes.push_back(part.size());
    whole.insert(whole.end(), part.begin(), part.end());
  }
  sizes.push_back(sizes.size());
  if (far) {
    Message first(whole.begin(), whole.begin() + 150);
    const auto table = std::as_bytes(std::span(sizes));
    first.insert(first.end(), table.begin(), table.end());
    far->send(1, Phase::kParticles, 3, first);
    far->send(1, Phase::kParticles, 3, Message(whole.begin() + 150, whole.end()));
  }
  const auto mine = sites->receive_shares(0, Phase::kParticles, 3);
  std::size_t taken = 0;
  for (int p = world.rank(); p < parts; p += world.size(), ++taken) {
    ASSERT_LT(taken, mine.size());
    EXPECT_EQ(mine[taken], pattern(100 + 10 * static_cast<std::size_t>(p), static_cast<unsigned>(p)));
  }
  EXPECT_EQ(taken, mine.size());
}

TEST_F(SitesRanks, ALossAtTheGatewayIsOneOnAllRanks) {
  const std::string text = "site far is lost (its path is silent)";
  make(0);
  if (world.size() > 1) {
    sites->publish(Phase::kSums, 1, pattern(10, 1));
    EXPECT_EQ(lost([&] { sites->collect(Phase::kSums, 1); }), text);
  } else {
    EXPECT_EQ(lost([&] { sites->publish(Phase::kSums, 1, pattern(10, 1)); }), text);
  }
  EXPECT_EQ(lost([&] { sites->receive_parts(0, Phase::kTrees, 1); }), text);
  EXPECT_EQ(lost([&] { sites->receive_shares(0, Phase::kTrees, 1); }), text);
  EXPECT_EQ(lost([&] { sites->close(); }), text);
  make(2);  // in the middle of many pieces
  sites->set_piece(300);
  EXPECT_EQ(lost([&] { sites->send_parts(0, Phase::kTrees, 1, pattern(mine, 0)); }), text);
  EXPECT_EQ(lost([&] { sites->publish_parts(Phase::kTrees, 1, pattern(mine, 0)); }), text);
}

TEST_F(SitesRanks, TrafficIsAlikeOnAllRanks) {
  make();
  sites->send_parts(0, Phase::kTrees, 1, pattern(mine, 0));
  std::uint64_t all = 0;
  for (int rank = 0; rank < world.size(); ++rank) all += 1000 + 37 * static_cast<std::uint64_t>(rank);
  const Traffic trees = sites->take_traffic()[static_cast<std::size_t>(Phase::kTrees)];
  EXPECT_EQ(trees.bytes_sent, all + 8 * (static_cast<std::uint64_t>(world.size()) + 1));
  EXPECT_EQ(trees.messages_sent, 1u);
}

}  // namespace
}  // namespace maki::sites
