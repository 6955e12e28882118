// Sites of all ranks: what a gateway passes on, all sites' particles, and a site of the first rank alone beside one of
// all ranks, whose mesh gives the forces of one job with all particles, bit for bit.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "host/fft/particle_brick.hpp"
#include "host/fft/pencil_mesh.hpp"
#include "host/measure/spectra.hpp"
#include "tests/kernels/mesh/field_of.hpp"
#include "tests/kernels/particles/sets.hpp"
#include "tests/sites/replayed_sites.hpp"
#include "tests/wan/helpers.hpp"
#include "wan/sites/gathered_set.hpp"
#include "wan/sites/site_mesh.hpp"
#include "wan/sites/sites.hpp"

namespace maki::sites {
namespace {

using wan::test::error_of, wan::test::pattern;

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
  std::array<Traffic, kPhases> take_traffic() override { return ring_->take_traffic(); }
  std::size_t memory_limit() const override { return limit; }
  void close() override { look(); }
  std::size_t limit = SIZE_MAX;

 private:
  void look() {
    if (left_-- <= 0) throw SiteLost("site far is lost", "its path is silent");
  }
  std::unique_ptr<Ring> ring_;
  int left_;
};

struct SitesRanks : ::testing::Test {
  const Communicator world = Communicator::world();
  std::unique_ptr<Ring> far;  // on the first rank
  std::unique_ptr<Sites> sites;
  const std::size_t mine = 1000 + 37 * static_cast<std::size_t>(world.rank());

  void make(int calls = 1000, std::size_t limit = SIZE_MAX) {
    std::unique_ptr<FailingRing> near;
    if (world.rank() == 0) {
      auto rings = make_memory_rings(2);
      near = std::make_unique<FailingRing>(std::move(rings[1]), calls);
      near->limit = limit;
      far = std::move(rings[0]);
    }
    sites = std::make_unique<Sites>(std::move(near), std::vector<std::string>{"far", "here"}, world);
  }
  // What this site has sent under number 9.
  void send_back(Phase phase) {
    if (auto* const there = dynamic_cast<MemoryRing*>(far.get()))
      while (there->arrived(1, phase)) there->send(1, phase, 9, there->receive(1, phase, 9));
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
    for (Phase phase : {Phase::kTrees, Phase::kMesh}) send_back(phase);
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

// Each rank has its part of the machine's room: also for what comes to all of them. The first piece announces it.
TEST_F(SitesRanks, PartsWithoutRoomAreRefusedOnAllRanks) {
  const std::size_t ranks = static_cast<std::size_t>(world.size()), mine = 1000;
  for (const std::size_t room : {mine * ranks, mine * ranks - 1, mine, mine - 1}) {
    make(1000, room * ranks);
    sites->set_piece(100);
    for (const Phase phase : {Phase::kTrees, Phase::kMesh}) {
      sites->send_parts(0, phase, 9, pattern(mine, 1));
      send_back(phase);
    }
    const std::string all = error_of<Error>([&] { sites->receive_parts(0, Phase::kTrees, 9); });
    EXPECT_EQ(all.empty(), room >= mine * ranks) << all;
    const std::string shares = error_of<Error>([&] { sites->receive_shares(0, Phase::kMesh, 9); });
    EXPECT_EQ(shares.empty(), room >= mine) << shares;
    for (const std::string& text : {all, shares})
      EXPECT_TRUE(text.empty() || (wan::test::says(text, "site far announces ") &&
                                   wan::test::says(text, " for one rank of this site (there is room for ")))
          << text;
  }
}

TEST_F(SitesRanks, ALossAtTheGatewayIsOneOnAllRanks) {
  const std::string text = "site far is lost (its path is silent)";
  make(0);
  if (world.size() > 1) {
    sites->publish(Phase::kSums, 1, pattern(10, 1));
    EXPECT_EQ(error_of<SiteLost>([&] { sites->collect(Phase::kSums, 1); }), text);
  } else {
    EXPECT_EQ(error_of<SiteLost>([&] { sites->publish(Phase::kSums, 1, pattern(10, 1)); }), text);
  }
  EXPECT_EQ(error_of<SiteLost>([&] { sites->receive_parts(0, Phase::kTrees, 1); }), text);
  EXPECT_EQ(error_of<SiteLost>([&] { sites->receive_shares(0, Phase::kTrees, 1); }), text);
  EXPECT_EQ(error_of<SiteLost>([&] { sites->close(); }), text);
  make(2);  // in the middle of many pieces
  sites->set_piece(300);
  EXPECT_EQ(error_of<SiteLost>([&] { sites->send_parts(0, Phase::kTrees, 1, pattern(mine, 0)); }), text);
  EXPECT_EQ(error_of<SiteLost>([&] { sites->publish_parts(Phase::kTrees, 1, pattern(mine, 0)); }), text);
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

using maki::test::OnDevice, maki::test::replay_sites, maki::test::test_stream;

// Two sites of all ranks each; every rank of a site has another number of its particles.
TEST(GatheredSetRanks, IsSharedOutByPlaceAndMeasuredAsOneSet) {
  const Communicator ranks = Communicator::world();
  auto set = maki::testing::uniform_set(3000, 11);
  for (SourceParticle& p : set) p.mass = 2;
  const auto size = static_cast<std::size_t>(ranks.size()), rank = static_cast<std::size_t>(ranks.rank());
  const Stream& stream = test_stream();
  const OnDevice whole(set);
  const MeasurePowerOptions power{.cells = 16};
  const ProjectionOptions picture{.width = 16, .height = 16};
  const MeasuredPower expected = measure_power(Communicator::self(), stream, whole.data(), whole.size(), power);
  const std::vector<double> drawn = project_density(Communicator::self(), stream, whole.data(), whole.size(), picture);
  replay_sites(
      2,
      [&](Sites& sites) {
        std::vector<SourceParticle> own;
        for (std::size_t i = 0; i < set.size(); ++i) {
          const bool mine = (set[i].x >> 31) == static_cast<std::uint32_t>(sites.me());
          if (mine && (i * i) % size == rank) own.push_back(set[i]);
        }
        const OnDevice mine(own);
        const GatheredSet all(sites, stream, mine);
        EXPECT_EQ(all.here(), sites.me() == 0);
        if (!all.here()) return;
        for (const SourceParticle& p : all.share().download(stream)) ASSERT_EQ(p.x * std::uint64_t{size} >> 32, rank);
        const MeasuredPower measured = measure_power(ranks, stream, all.share().data(), all.share().size(), power);
        ASSERT_EQ(measured.bins.size(), expected.bins.size());
        for (std::size_t i = 0; i < expected.bins.size(); ++i) {
          EXPECT_EQ(measured.bins[i].modes, expected.bins[i].modes);
          EXPECT_NEAR(measured.bins[i].power, expected.bins[i].power, 1e-5 * expected.bins[i].power);
        }
        EXPECT_EQ(project_density(ranks, stream, all.share().data(), all.share().size(), picture), drawn);
      },
      ranks);
}

TEST(GatheredSetRanks, FromSiteGivesOneMessageToAllRanksOrTheFirstOfAllSites) {
  const Communicator ranks = Communicator::world();
  replay_sites(
      3,
      [&](Sites& sites) {
        const Message mine(static_cast<std::size_t>(5 + sites.me()), static_cast<std::byte>(ranks.rank()));
        for (const int from : {2, 0, 1}) {
          const Message expected(static_cast<std::size_t>(5 + from), std::byte{0});
          EXPECT_EQ(from_site(sites, from, mine), expected);
          EXPECT_EQ(from_site_to_first(sites, from, mine), ranks.rank() == 0 ? expected : Message());
        }
      },
      ranks);
}

using Set = std::vector<SourceParticle>;
using maki::test::Field, maki::test::field_of;

struct Site {
  std::unique_ptr<Sites> sites;
  std::unique_ptr<SiteMesh> outside;
  std::unique_ptr<PencilMesh> mesh;

  Site(std::unique_ptr<Ring> ring, const Communicator& ranks, const MeshOptions& options, const ForceLaw& law)
      : sites(std::make_unique<Sites>(std::move(ring), std::vector<std::string>{"wide", "far"}, ranks)),
        outside(std::make_unique<SiteMesh>(*sites)), mesh(std::make_unique<PencilMesh>(ranks, options, law)) {
    outside->set_slabs(Slabs(2, 0.1), 0.001);
    outside->set_piece(5000);
    mesh->set_outside(outside.get());
  }
};

TEST(SiteMeshRanks, ForcesAreThoseOfOneJob) {
  const Communicator world = Communicator::world();
  const ForceLaw law{.split = Split::kPolynomial, .r_cut = 0.12f};
  for (int mass_bits : {0, 10}) {
    const MeshOptions options{32, Assignment::kPcs, Gradient::kAnalytic, Interlacing::kFull, mass_bits};
    Set mine, far;  // of this rank
    int owner = 0;
    for (const SourceParticle& p : maki::testing::random_set(600, 9, 1)) {
      owner = (owner + 1) % world.size();
      if (p.x < 0x80000000u && owner == world.rank()) mine.push_back(p);
      if (p.x >= 0x80000000u && world.rank() == 0) far.push_back(p);
    }
    Set all = mine;
    all.insert(all.end(), far.begin(), far.end());
    const OnDevice here(mine), there(far), both(all);
    PencilMesh one(world, options, law);
    const MassUnit unit =
        choose_mass_unit(options.assignment, options.cells, mass_totals(world, test_stream(), both.data(), both.size()),
                         options.mass_bits);
    const Field expected = field_of(one, all, unit);

    std::vector<std::unique_ptr<Ring>> rings(2);
    if (world.rank() == 0) rings = make_memory_rings(2);
    std::unique_ptr<Site> other;
    if (world.rank() == 0) {
      other = std::make_unique<Site>(std::move(rings[1]), Communicator::self(), options, law);
      other->mesh->begin(test_stream(), there.data(), there.size(), unit);
    }
    Site site(std::move(rings[0]), world, options, law);
    site.mesh->begin(test_stream(), here.data(), here.size(), unit);
    Field found = field_of(*site.mesh, mine, unit);
    if (other) found.append(field_of(*other->mesh, far, unit));
    EXPECT_EQ(found, expected);
    EXPECT_EQ(site.outside->counters().shared_planes, 0u);
  }
}

// The first rank has the whole mesh, as where there are more ranks than pencils.
TEST(SiteMeshRanks, RanksWithoutAPartOfTheMeshTakePart) {
  const Communicator ranks = Communicator::world();
  const int m = 8;
  const MeshBox box = ranks.rank() == 0 ? MeshBox::whole(m) : MeshBox{m, {}, {}};
  replay_sites(
      2,
      [&](Sites& sites) {
        SiteMesh mesh(sites);
        for (const int meshes : {1, 2}) {
          std::array<std::vector<std::uint64_t>, 2> counts;
          std::array<std::uint64_t*, 2> at{};
          for (std::size_t i = 0; i < static_cast<std::size_t>(meshes) && box.size() > 0; ++i) {
            counts[i].assign(box.size(), 1 + i + static_cast<std::size_t>(sites.me()));
            at[i] = counts[i].data();
          }
          mesh.start_sum(box, MassUnit{}, meshes, at[0], at[1]);
          mesh.finish_sum(box, MassUnit{}, meshes, at[0], at[1]);
          for (const auto& sums : counts)
            for (const std::uint64_t sum : sums) ASSERT_EQ(sum, &sums == counts.data() ? 3u : 5u);
        }
      },
      ranks);
}

}  // namespace
}  // namespace maki::sites
