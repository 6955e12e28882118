// Sites that must not take part, sites that are lost, and one that was let in and then sends what it likes: the run
// ends with an error that names it, soon and in bounded memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <thread>

#include "tests/sites/net_rings.hpp"
#include "tests/wan/fuzz/rounds.hpp"
#include "tests/wan/net/proxy.hpp"
#include "tests/wan/net/relay/rig.hpp"
#include "wan/net/listener.hpp"
#include "wan/sites/ring.hpp"

namespace maki::sites {
namespace {

using namespace test;
using wan::fuzz::damage, wan::fuzz::Random, wan::fuzz::wild_number;

constexpr auto kHang = std::chrono::seconds(120);  // of a loaded machine

// Of a call that may never end.
std::string soon(std::future<std::string>& text) {
  if (text.wait_for(kHang) != std::future_status::ready) {
    std::cerr << "site a hangs" << std::endl;
    std::abort();  // nothing else ends its threads
  }
  return text.get();
}

TEST(NetRingRefusal, ADifferentConfigurationIsNamedAtAllSites) {
  for (int count : {2, 3, 4}) {
    Plans plans(count);
    plans[1].agreement = "gravity.theta = 0.4\ntime.steps = 10\noutput.spectra = true\n";
    if (count > 2) plans.for_all([](RingPlan& plan) { plan.wait_limit = 10; });
    const auto texts = refusals(plans);
    int named = 0;
    for (const std::string& text : texts) {
      EXPECT_FALSE(says(text, "time.steps")) << text;
      const bool names =
          says(text, "gravity.theta is 0.5 at site") || says(text, "gravity.theta is 0.4 at site b and 0.5 at site");
      named += names;
      // One that comes when its neighbours have left again waits for them.
      EXPECT_TRUE(names || says(text, "did not come within 10 s")) << text;
    }
    EXPECT_GE(named, 2);
    if (count > 2) continue;  // there a site may hear of it from a third one first
    EXPECT_TRUE(says(texts[0], "gravity.theta is 0.5 at site a and 0.4 at site b"));
    expect_contains(texts[1], {"gravity.theta is 0.4 at site b and 0.5 at site a",
                               "output.spectra is true at site b and not set at site a"});
  }
}

TEST(NetRingRefusal, AnotherVersionOrRingIsNamed) {
  {
    Plans plans(2);
    plans[1].version = "1.1";
    for (const std::string& text : refusals(plans))
      EXPECT_TRUE(says(text, "site a runs version 1.0 and site b version 1.1") ||
                  says(text, "site b runs version 1.1 and site a version 1.0"))
          << text;
  }
  Plans plans(3);
  plans[2].sites.push_back(plans[2].sites.back());
  plans[2].sites.back().name = "d";
  std::swap(plans[2].sites[2], plans[2].sites[3]);
  plans[2].me = 3;
  auto a = plans.begin(0), c = plans.begin(2);
  for (auto* one : {&a, &c})
    expect_contains(error_of([&] { one->get(); }), {"a, b, c at site a", "a, b, d, c at site c"});
}

TEST(NetRingRefusal, AnotherSiteAtTheAddressIsNamed) {
  Plans plans(3);
  plans[0].sites[1].address = plans[0].sites[2].address;  // a takes c for b
  plans[2].wait_limit = 10;                               // it answers so long
  auto a = plans.begin(0), c = plans.begin(2);
  EXPECT_TRUE(says(error_of([&] { a.get(); }), "it calls itself c: correct the address of site b"));
  EXPECT_THROW(c.get(), Error);
}

TEST(NetRingLoss, OneThatLeavesIsLostForAll) {
  for (int count : {2, 3, 5}) {
    Plans plans(count);
    auto rings = start(plans);
    std::vector<std::future<std::string>> waiting;
    for (int i = 0; i < count; ++i) {
      if (i == 1) continue;
      waiting.push_back(std::async(std::launch::async, [&rings, i] {
        return error_of<SiteLost>([&] { rings[i]->receive(1, Phase::kTrees, 1); });
      }));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    rings[1].reset();
    for (auto& one : waiting) EXPECT_TRUE(says(one.get(), "site b has left the run"));
    // Whatever is called then says the same.
    EXPECT_TRUE(says(error_of<SiteLost>([&] { rings[0]->publish(Phase::kSums, 1, {}); }), "site b"));
    EXPECT_TRUE(says(error_of<SiteLost>([&] { rings[0]->send(1, Phase::kSums, 1, {}); }), "site b"));
    EXPECT_TRUE(says(error_of<SiteLost>([&] { rings[0]->receive(count - 1, Phase::kSums, 1); }), "site b"));
    EXPECT_TRUE(says(error_of<SiteLost>([&] { rings[0]->close(); }), "site b"));
  }
}

// Two sites that see each other by the relay only.
void join_by(const wan::test::Rig& rig, Plans& plans) {
  plans.for_all([&](RingPlan& plan) {
    plan.sites[0].address.port = 0;
    plan.sites[1].relay = rig.route("hidden");
  });
}

TEST(NetRingRelay, ASiteBehindARelayTakesPart) {
  wan::test::StartedRig rig;
  Plans plans(2);
  join_by(rig, plans);
  auto rings = start(plans);
  const Message message = pattern(3'000'000, 1);
  rings[0]->publish(Phase::kMesh, 1, message);
  rings[1]->send(0, Phase::kTrees, 1, message);
  EXPECT_TRUE(rings[1]->receive(0, Phase::kMesh, 1) == message);
  EXPECT_TRUE(rings[0]->receive(1, Phase::kTrees, 1) == message);
  EXPECT_TRUE(comes_true([&] { return rig.relay->status().bytes > 6'000'000u; }));
  close_all(rings);
}

// A link that carries nothing any more, as when a cable is cut: both its ends find out after their patience.
TEST(NetRingLoss, OneThatIsSilentIsLostForAllAfterThePatience) {
  wan::test::StartedRig rig;
  Plans plans(2);
  join_by(rig, plans);
  plans.for_all([](RingPlan& plan) {
    plan.path.heartbeat = 0.2;
    plan.path.stream_timeout = 1;
    plan.path.patience = 4;
  });
  const auto begun = wan::WallClock::now();
  auto rings = start(plans);
  std::vector<std::future<std::string>> waiting;
  for (int i : {0, 1}) {
    waiting.push_back(std::async(std::launch::async, [&rings, i] {
      return error_of<SiteLost>([&] { rings[i]->receive(1 - i, Phase::kSums, 1); });
    }));
  }
  rig.stop();
  for (int i : {0, 1})
    expect_contains(waiting[i].get(), {i == 0 ? "site b is lost (seen by site a" : "site a is lost (seen by site b",
                                       "nothing was heard of it for "});
  EXPECT_GE(wan::seconds_since(begun), 4);
}

// As when a job is killed and started again within the patience.
TEST(NetRingLoss, OneThatWasStartedAnewIsLostForThatReason) {
  Plans plans(2);
  wan::test::Proxy proxy(plans[1].sites[1].listen);
  plans[0].sites[1].address = proxy.address();
  auto rings = start(plans);
  const LinkPlan listening = listening_plan(plans[1]);
  const wan::Listener anew({"127.0.0.1", 0}, listening.security, listening.path);
  proxy.lead_to(anew.address());
  proxy.cut();
  expect_contains(error_of<SiteLost>([&] { rings[0]->receive(1, Phase::kSums, 1); }),
                  {"site b is lost (seen by site a: nothing was heard of it for ",
                   "the peer does not know this session: it was started anew, or has given the path up)"});
}

// So short that a site leaves soon when it is asked to, and longer than busy machines are silent.
void shorten_patience(Plans& plans) {
  plans.for_all([](RingPlan& plan) {
    plan.path.heartbeat = 0.2;
    plan.path.patience = 4;
  });
}

// A site whose paths answer and whose job does not, as where its file system hangs.
TEST(NetRingHang, ASiteThatIsAskedToStopLeavesOneThatHangs) {
  for (const bool closing : {false, true}) {
    Plans plans(3);
    shorten_patience(plans);
    auto rings = start(plans);
    std::atomic<bool> asked = false;
    rings[0]->leave_when([&] { return asked.load(); });
    auto waiting = std::async(std::launch::async, [&] {
      return error_of<SiteLost>([&] { closing ? rings[0]->close() : (void)rings[0]->receive(1, Phase::kTrees, 1); });
    });
    EXPECT_EQ(waiting.wait_for(std::chrono::seconds(5)), std::future_status::timeout) << "nobody has asked";
    asked = true;
    const std::string text = soon(waiting);
    const std::string what = closing ? "waiting for the end of site b for " : "waiting for trees of site b for ";
    expect_contains(text, {"site b is lost (seen by site a: " + what, " s, and the run is asked to stop)"});
    EXPECT_EQ(error_of<SiteLost>([&] { rings[2]->receive(1, Phase::kTrees, 1); }), text);
  }
}

// Site b closes in good order while what site c sends site a is still on its way.
TEST(NetRingHang, ANeighbourThatHasClosedIsNotLost) {
  Plans plans(3);
  plans.for_all([](RingPlan& plan) { plan.path.stream_timeout = 60; });
  const auto [caller, called] = calls_us(plans[0], 2) ? std::pair(2, 0) : std::pair(0, 2);
  wan::test::Proxy proxy(plans[called].sites[called].listen);
  plans[caller].sites[called].address = proxy.address();
  auto rings = start(plans);
  std::atomic<int> asked = 0;
  rings[0]->leave_when([&] { return ++asked > 0; });
  proxy.stall(true);
  std::vector<std::future<void>> closing;
  for (auto& ring : rings) closing.push_back(std::async(std::launch::async, [&ring] { ring->close(); }));
  closing[1].get();
  const int before = asked;
  EXPECT_TRUE(comes_true([&] { return asked > before + 2; }));
  proxy.stall(false);
  EXPECT_NO_THROW(closing[0].get());
  EXPECT_NO_THROW(closing[2].get());
}

TEST(NetRingHang, ASiteThatHasAlwaysBeenSlowIsWaitedFor) {
  Plans plans(2);
  shorten_patience(plans);
  plans.for_all([](RingPlan& plan) { plan.wait_lines = 1; });
  auto rings = start(plans);
  bool asked = false;
  rings[0]->leave_when([&] { return asked; });
  for (const std::uint64_t number : {1, 2}) {
    auto slow = std::async(std::launch::async, [&] {
      std::this_thread::sleep_for(std::chrono::seconds(number == 1 ? 6 : 5));
      rings[1]->send(0, Phase::kTrees, number, Message(number));
    });
    EXPECT_EQ(rings[0]->receive(1, Phase::kTrees, number).size(), number);
    asked = true;
  }
  const auto waits = [](const std::string& line) { return says(line, "waiting for trees of site b for "); };
  EXPECT_GE(std::ranges::count_if(plans.quiet.all(), waits), 2);
  asked = false;
  close_all(rings);
}

// Site b of two, by hand. Site a calls it.
struct Neighbour {
  wan::Listener listener;
  wan::Path path;
  Message hello;

  explicit Neighbour(const RingPlan& plan)
      : listener(plan.sites[1].listen, plan.security, plan.path), hello(encode(hello_of(plan, Purpose::kRun))) {}

  // Until site a takes it for one of the ring.
  void join() {
    path = std::move(listener.accept().path);
    path.start_send(kHelloTag, hello);
    path.receive_any(kHelloTag, kLongestHello);
    path.receive_any(tag_of(0, Phase::kControl), kPieceBytes);  // a site that left before would be waited for
    send(Phase::kControl, 0, hello);
  }
  void send_bytes(Phase phase, std::span<const std::byte> bytes) { path.start_send(tag_of(1, phase), bytes).wait(); }
  void send_header(Phase phase, const Header& header, std::span<const std::byte> message = {}) {
    const auto front = std::as_bytes(std::span(&header, 1));
    Message head(front.begin(), front.end());
    head.insert(head.end(), message.begin(), message.end());
    send_bytes(phase, head);
  }
  void send(Phase phase, std::uint64_t number, const Message& message) {
    const Header header{Header::kMessage, 0, 1, number, message.size(), kPieceBytes};
    if (header.inlined()) return send_header(phase, header, message);
    send_header(phase, header);
    send_bytes(phase, message);  // of less than a piece
  }
};

// What site a says in the end, when it has taken all that it can.
std::string take_all(RingPlan plan) {
  return error_of([&] {
    NetRing ring(plan);
    for (std::uint64_t number = 1;; ++number)
      for (const Phase phase : kAll) ring.receive(1, phase, number);
  });
}

// deed(neighbour) once it has joined; what site a says then.
template <class Deed>
std::string after(Plans& plans, Deed deed) {
  Neighbour neighbour(plans[1]);
  auto victim = std::async(std::launch::async, take_all, plans[0]);
  neighbour.join();
  try {
    deed(neighbour);
  } catch (const wan::Error&) {
    // site a has had enough of it
  }
  auto closing = std::async(std::launch::async, [&] { neighbour.path.close(1); });
  const std::string said = soon(victim);
  closing.get();
  return said;
}

TEST(HostileNeighbour, SizesAreLookedAtBeforeMemoryIsTaken) {
  for (const std::uint64_t bytes : {kLongestMessage + 1, std::size_t{1} << 36, std::size_t{1} << 62, ~std::size_t{0}}) {
    Plans plans(2);
    const std::string said = after(plans, [&](Neighbour& neighbour) {
      neighbour.send_header(Phase::kMesh, {Header::kMessage, 0, 1, 1, bytes, kPieceBytes});
    });
    EXPECT_EQ(said, "what site b sends cannot be taken (mesh at site a: it is no message of this version)");
  }
}

TEST(HostileNeighbour, WhatNobodyAsksForIsBounded) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1000}, std::size_t{100'000}}) {
    Plans plans(2);
    plans[0].memory_limit = 1'000'000;
    const std::string said = after(plans, [&](Neighbour& neighbour) {
      for (std::uint64_t number = 1; number < 10'000; ++number) neighbour.send(Phase::kOutput, number, Message(bytes));
    });
    EXPECT_TRUE(says(said, "what site b sends cannot be taken (output at site a: there is no room for"));
  }
}

TEST(HostileNeighbour, ARoomThatWasFilledIsFreeAgain) {
  Plans plans(2);
  plans.for_all([](RingPlan& plan) { plan.memory_limit = 1'000'000; });
  auto rings = start(plans);
  for (std::uint64_t number = 1; number < 30; ++number) {
    rings[1]->send(0, Phase::kMesh, number, pattern(300'000, 1));
    EXPECT_EQ(rings[0]->receive(1, Phase::kMesh, number).size(), 300'000u);
  }
  close_all(rings);
}

// Two hops to go: what a site passes on counts as what it receives, and ends where it should.
TEST(HostileNeighbour, NobodySendsPastTheEndOfTheWay) {
  Plans plans(2);
  const std::string said = after(plans, [&](Neighbour& neighbour) {
    neighbour.send_header(Phase::kSums, {Header::kMessage, 1, 1, 1, 0, kPieceBytes});
  });
  EXPECT_TRUE(says(said, "what site b sends cannot be taken (sums at site a: a message has lost its way)"));
}

// The one that goes around the ring, not the first one.
TEST(HostileNeighbour, AnotherSitesHelloIsRefused) {
  Plans plans(2);
  Neighbour neighbour(plans[1]);
  auto victim = std::async(std::launch::async, take_all, plans[0]);
  const Message honest = neighbour.hello;
  Hello other = decode_hello(honest);
  other.name = "a";
  neighbour.path = std::move(neighbour.listener.accept().path);
  neighbour.path.start_send(kHelloTag, honest);
  neighbour.send(Phase::kControl, 0, encode(other));
  EXPECT_EQ(victim.get(), "what should be site b calls itself a");
}

TEST(HostileNeighbour, NewsWithoutWordsGetSome) {
  Plans plans(2);
  const std::string said = after(plans, [](Neighbour& neighbour) {
    neighbour.path.start_send(kNoticeTag, Message(sizeof(std::uint32_t))).wait();
  });
  EXPECT_EQ(said, "a neighbour has left");
}

// Honest messages, then one that is not: a wrong header, pieces of other sizes, news, bytes of no meaning.
void send_wildly(Neighbour& neighbour, Random& random, int honest, int& sent) {
  std::array<std::uint64_t, kPhases> number{};
  for (int i = 0; i < honest; ++i, ++sent) {
    const auto phase = static_cast<std::size_t>(i) % kPhases;
    neighbour.send(kAll[phase], ++number[phase], Message(random() % (i % 50 == 0 ? 50'000 : 200)));
  }
  for (int i = 0; i < 20; ++i, ++sent) {
    const Phase phase = kAll[random() % kPhases];
    Header header{Header::kMessage, 0, 1, number[static_cast<std::size_t>(phase)] + 1, random() % 40'000, kPieceBytes};
    Message bytes(sizeof header + (header.inlined() ? header.bytes : 0));
    std::memcpy(bytes.data(), &header, sizeof header);
    if (random() % 3 != 0) damage(bytes, random);
    switch (random() % 50) {
      case 0: neighbour.path.start_send(kNoticeTag, bytes).wait(); break;
      case 1: neighbour.path.start_send(wild_number(random) % wan::kMaxTag, bytes).wait(); break;
      default: neighbour.send_bytes(phase, bytes);
    }
    for (auto pieces = random() % 3; pieces > 0; --pieces) neighbour.send_bytes(phase, Message(random() % 50'000));
  }
}

void send_wildly(int rounds, int honest, unsigned seed) {
  std::cout << "seed " << seed << ", " << rounds << " rounds of " << honest << " messages and more" << std::endl;
  Random random(seed);
  int sent = 0, sooner = 0;
  for (int round = 0; round < rounds; ++round) {
    Plans plans(2);
    plans[0].memory_limit = std::size_t{64} << 20;
    const std::string said = after(plans, [&](Neighbour& neighbour) { send_wildly(neighbour, random, honest, sent); });
    EXPECT_FALSE(said.empty());
    sooner += says(said, "site b") ? 1 : 0;  // else the text of its news, which it has chosen
  }
  EXPECT_GT(sooner, rounds / 2);
  std::cout << sent << " messages" << std::endl;
}

TEST(HostileNeighbour, AnythingEndsInAnError) { send_wildly(15, 100, 22); }
TEST(FullHostileNeighbour, AnythingEndsInAnError) { send_wildly(1000, 1000, std::random_device()()); }

}  // namespace
}  // namespace maki::sites
