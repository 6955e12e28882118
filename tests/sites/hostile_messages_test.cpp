// Everything that a site reads of another one, from a neighbour that sends what it likes: each message is taken, or
// ends in an error that names the site. With many more messages in the long tests.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <iostream>
#include <map>
#include <memory>

#include "kernels/device/buffer.hpp"
#include "kernels/mesh/assign.hpp"
#include "src/gravity/site_agreement.hpp"
#include "tests/host/domain/fields.hpp"
#include "tests/kernels/mesh/mesh_sets.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/sites/replayed_sites.hpp"
#include "tests/wan/fuzz/rounds.hpp"
#include "wan/sites/gathered_set.hpp"
#include "wan/sites/ring.hpp"
#include "wan/sites/ring_plan.hpp"
#include "wan/sites/site_mesh.hpp"
#include "wan/sites/site_trees.hpp"
#include "wan/sites/slabs.hpp"

namespace maki::sites {
namespace {

using namespace test;
using wan::fuzz::damage, wan::fuzz::Random;
using Call = std::function<void(Sites&)>;

constexpr long kMostGrowth = 400 << 10;  // kB that a test's messages, of some kB each, may take at most

long peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// ---- what sites do with one another, each on little -----------------------------------------------------------------

void parts(Sites& sites) {
  sites.set_piece(100);
  Message mine(sites.me() == 0 ? 10 : 250, std::byte{7});
  for (const std::uint64_t number : {1, 2}) {
    sites.send_parts(1 - sites.me(), Phase::kTrees, number, mine);
    if (number == 1)
      sites.receive_parts(1 - sites.me(), Phase::kTrees, number);
    else
      sites.receive_shares(1 - sites.me(), Phase::kTrees, number);
  }
}

void gathered_set(Sites& sites) {
  static const std::array<std::vector<SourceParticle>, 2> sets = [] {
    std::array<std::vector<SourceParticle>, 2> both;
    for (std::uint32_t i = 0; i < 60; ++i) both[i % 3 == 0 ? 0 : 1].push_back({i << 26, i << 20, i << 10, 0.5f});
    return both;
  }();
  const maki::test::OnDevice mine(sets[static_cast<std::size_t>(sites.me())]);
  const GatheredSet all(sites, maki::test::test_stream(), mine);
  const Message text = from_site(sites, 1, Message(5, std::byte{1}));
  EXPECT_LT(text.size(), 1000u);
}

// New trees, a step with those that are kept, and a walk over what came.
void trees(Sites& sites, bool compress, float r_cut) {
  static std::map<int, std::unique_ptr<maki::testing::TreeSet>> sets;
  const Slabs slabs(2, 0);
  auto& set = sets[sites.me() + (r_cut > 0 ? 2 : 0)];
  if (!set) {
    std::vector<SourceParticle> mine;
    for (const SourceParticle& p : maki::testing::uniform_set(600, 3))
      if (slabs.site_of(p.x) == sites.me()) mine.push_back(p);
    set = std::make_unique<maki::testing::TreeSet>(mine, 64, r_cut > 0 ? kPeriodicMinLevel : 0);
    set->stream.synchronize();  // other streams read it from here on
  }
  const Stream stream;
  const WalkOptions walk{.theta = 0.5f, .r_cut = r_cut};
  SiteTrees trees(sites, {.compress = compress});
  const SourceParticle* particles = set->particles.source.data();
  trees.rebuild(stream, set->tree, particles, walk, {slabs}, 1);
  trees.finish(stream);
  const auto walk_them = [&] {
    if (trees.forest().cells == 0) return;
    InteractionLists lists;
    walk_tree(stream, trees.forest(), walk, set->all_groups(), lists);
  };
  walk_them();
  trees.update(stream, set->tree, particles, 2);
  trees.finish(stream);
  walk_them();
}

void mesh(Sites& sites) {
  constexpr int kCells = 16;
  static const std::vector<SourceParticle> all = maki::testing::uniform_set(500, 5);
  const Slabs slabs(2, 0.01);
  std::vector<SourceParticle> mine;
  for (const SourceParticle& p : all)
    if (slabs.site_of(p.x) == sites.me()) mine.push_back(p);
  const maki::test::OnDevice whole(all);
  const MassUnit unit =
      choose_mass_unit(maki::test::test_stream(), Assignment::kCic, kCells, whole.data(), whole.size(), 11);
  auto counts = maki::test::counts_of(mine, unit, Assignment::kCic, MeshBox::whole(kCells));
  SiteMesh site_mesh(sites);
  site_mesh.set_slabs(slabs, 0.004);
  site_mesh.set_piece(sites.me() == 1 ? 1 : 1 << 20);
  site_mesh.start_sum(MeshBox::whole(kCells), unit, 2, counts[0].data(), counts[1].data());
  site_mesh.finish_sum(MeshBox::whole(kCells), unit, 2, counts[0].data(), counts[1].data());
}

void migration(Sites& sites) {
  const Stream stream;
  maki::test::KnownParticles set;
  std::vector<std::uint64_t> ids;
  for (std::uint64_t id = 0; id < 40; ++id)
    if (static_cast<int>(id % 2) == sites.me()) ids.push_back(id);
  set.make(stream, ids);
  SiteMigration migration(sites, SiteMigration::Reach::kNeighbours);
  migration.begin(stream, Slabs(2, 0), set.particles, set.arrays(), 1);
  migration.finish(stream, set.particles, set.arrays(), 1);
}

// Sums of some steps, and the decisions that follow from them.
void agreement(Sites& sites) {
  SiteAgreement steps(sites);
  Slabs slabs(2, 0);
  for (int n = 0; n < 4; ++n) {
    steps.begin();
    const double far = steps.farthest(0.1 * n, 1.0 + sites.me());
    EXPECT_TRUE(std::isfinite(far) && far >= 1) << far;
    const std::vector<SiteWork> works = steps.works();
    if (n > 0) slabs = cut(slabs, works, {});
    EXPECT_GE(waste(works), 0);
    EXPECT_TRUE(std::isfinite(steps.tree().imbalance()));
    EXPECT_GE(steps.tree().fresh_error(), 0);
    SiteMeasures& mine = steps.mine();
    mine.acceleration = mine.momentum = mine.work = mine.force_cost = mine.reach_length = 2;
    mine.tree.interactions = mine.tree.largest = 1000;
    mine.tree.reference = mine.tree.difference = 1;
    mine.particles = 30;
    steps.set_samples(std::vector<std::uint32_t>(20, 5u << 20));
    steps.publish();
  }
}

struct Exchange {
  const char* name;
  Call call;
  int rounds;  // of the short test: some seconds for all
};
std::vector<Exchange> exchanges() {
  return {{"Parts", parts, 4000},
          {"GatheredSet", gathered_set, 3000},
          {"Trees", [](Sites& sites) { trees(sites, false, 0.1f); }, 400},
          {"TreesCompressed", [](Sites& sites) { trees(sites, true, 0); }, 400},
          {"Mesh", mesh, 300},
          {"Migration", migration, 600},
          {"Agreement", agreement, 3000}};
}

// ---- with damaged messages ------------------------------------------------------------------------------------------

// What the first site gets of the second one: some are changed, lost, sent twice or in another order.
void damage_some(ReplayRing::Sent& sent, Random& random) {
  std::vector<std::vector<std::pair<std::uint64_t, Message>>*> queues;
  for (auto& [key, queue] : sent)
    if (key[0] == 0 && !queue.empty()) queues.push_back(&queue);
  auto& queue = *queues[random() % queues.size()];
  const std::size_t at = random() % queue.size();
  switch (random() % 12) {
    case 0: queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(at)); break;
    case 1: queue.insert(queue.begin() + static_cast<std::ptrdiff_t>(at), queue[at]); break;
    case 2: std::swap(queue[at], queue[random() % queue.size()]); break;
    default: damage(queue[at].second, random);
  }
}

void try_out(const Exchange& exchange, int rounds, unsigned seed) {
  SCOPED_TRACE(::testing::Message() << exchange.name << ", seed " << seed);
  std::cout << exchange.name << ": seed " << seed << ", " << rounds << " rounds" << std::endl;
  const ReplayRing::Sent honest = maki::test::replay_sites(2, exchange.call);
  Random random(seed);
  const long before = peak_memory();
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    ReplayRing::Sent sent = honest;
    damage_some(sent, random);
    try {
      Sites one(std::make_unique<ReplayRing>(sent, 2, 0), maki::test::replayed_names(2), Communicator::self());
      exchange.call(one);
    } catch (const Error& error) {
      ++refused;
      const std::string text = error.what();
      const bool clear = text.find("east") != std::string::npos || text.find(kNotSentYet) != std::string::npos ||
                         text.find("not in step") != std::string::npos;
      EXPECT_TRUE(clear) << text;
    }
    ASSERT_LT(peak_memory() - before, kMostGrowth) << "round " << round;
  }
  EXPECT_GT(refused, rounds / 20);
}

class HostileMessages : public ::testing::TestWithParam<Exchange> {};
TEST_P(HostileMessages, AreTakenOrNamed) { try_out(GetParam(), GetParam().rounds, 20); }
const auto name_of = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Sites, HostileMessages, ::testing::ValuesIn(exchanges()), name_of);

// 10^6 messages together.
class FullHostileMessages : public ::testing::TestWithParam<Exchange> {};
TEST_P(FullHostileMessages, AreTakenOrNamed) {
  const unsigned seed = std::random_device()();
  const int share = GetParam().rounds;
  try_out(GetParam(), static_cast<int>(1e6 / 8700 * share), seed);
}
INSTANTIATE_TEST_SUITE_P(Full, FullHostileMessages, ::testing::ValuesIn(exchanges()), name_of);

// ---- hellos and headers ---------------------------------------------------------------------------------------------

Hello honest_hello() {
  Hello hello;
  hello.version = "1.0";
  hello.name = "east";
  hello.ring = {"north", "east", "south"};
  hello.agreement = "gravity.theta = 0.5\ntime.steps = 10\n";
  hello.restarts = {10, 20, 30};
  return hello;
}

void read_hellos(int rounds, unsigned seed) {
  const Hello ours = honest_hello();
  const Message honest = encode(ours);
  Random random(seed);
  const long before = peak_memory();
  for (int round = 0; round < rounds; ++round) {
    Message message = honest;
    damage(message, random);
    try {
      const Hello theirs = decode_hello(message);
      EXPECT_LE(theirs.ring.size(), kMostSites);
      EXPECT_LE(theirs.restarts.size(), kMostRestarts);
      for (const std::string& difference : differences(ours, theirs))
        EXPECT_EQ(wan::printable(difference, std::string::npos), difference);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("no site of a run"), std::string::npos) << error.what();
    }
  }
  EXPECT_LT(peak_memory() - before, kMostGrowth);
}

TEST(HostileHellos, AreReadOrRefused) { read_hellos(20'000, 21); }
TEST(FullHostileHellos, AreReadOrRefused) { read_hellos(1'000'000, std::random_device()()); }

TEST(HostileHellos, CountsAreBounded) {
  Hello hello = honest_hello();
  hello.ring.assign(kMostSites + 1, "x");
  EXPECT_THROW(decode_hello(encode(hello)), Error);
  hello = honest_hello();
  hello.restarts.assign(kMostRestarts + 5, 1);
  hello.restarts.back() = 7;
  const Hello read = decode_hello(encode(hello));
  EXPECT_EQ(read.restarts.size(), kMostRestarts);
  EXPECT_EQ(read.restarts.back(), 7u);
}

// Of what a header may say: no size beyond the longest message, no end off the way that its lane goes.
TEST(HostileHeaders, SayNothingThatCannotBe) {
  Header header;
  const auto read = [&](std::size_t more = 0) {
    std::vector<std::byte> bytes(sizeof header + more);
    std::memcpy(bytes.data(), &header, sizeof header);
    return header_of(bytes, 4).has_value();
  };
  header.piece = kPieceBytes;
  header.bytes = kLongestMessage;
  EXPECT_TRUE(read());
  for (const std::uint64_t bytes : {kLongestMessage + 1, std::size_t{1} << 40, ~std::size_t{0}}) {
    header.bytes = bytes;
    EXPECT_FALSE(read()) << bytes;
  }
  header.bytes = kLongestMessage;
  for (const std::uint64_t piece : {std::size_t{0}, kSmallPiece - 1, kLongestMessage + 1, ~std::size_t{0}}) {
    header.piece = piece;
    EXPECT_FALSE(read()) << piece;
  }
}

TEST(HostileHeaders, EndsLieOnTheWay) {
  for (const int count : {2, 3, 4, 5, 8}) {
    for (int origin = 0; origin < count; ++origin) {
      const Routes from{count, origin};
      for (int last = 0; last < count; ++last) {
        for (int me = 0; me < count; ++me) {
          if (me == origin) continue;
          bool passes = false;  // walked site by site
          const int step = from.goes_right(last) ? 1 : count - 1;
          for (int at = origin; last != origin && at != last;) {
            at = (at + step) % count;
            passes = passes || at == me;
          }
          EXPECT_EQ((Routes{count, me}.passes(origin, last)), passes) << count << origin << last << me;
        }
      }
    }
  }
}

}  // namespace
}  // namespace maki::sites
