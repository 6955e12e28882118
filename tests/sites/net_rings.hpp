// Several sites in one process over loopback, for tests.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "tests/wan/helpers.hpp"
#include "tests/wan/ports.hpp"
#include "wan/sites/net_ring.hpp"

namespace maki::sites::test {

using maki::test::error_of, maki::test::expect_contains, maki::test::says;
using wan::test::comes_true, wan::test::pattern;
using Rings = std::vector<std::unique_ptr<NetRing>>;

constexpr Phase kAll[] = {Phase::kSums,      Phase::kMesh,   Phase::kTrees,
                          Phase::kParticles, Phase::kOutput, Phase::kControl};

// Plans of sites a, b, c, ... that trust one another.
struct Plans {
  wan::test::Log quiet;    // lines of paths: a test provokes many
  wan::test::Lines lines;  // of all sites, for their users
  std::vector<RingPlan> plans;

  explicit Plans(int count) {
    RingPlan plan;
    const auto ports = wan::test::free_ports(count);
    for (int i = 0; i < count; ++i) {
      SitePlace place;
      place.name = std::string(1, static_cast<char>('a' + i));
      place.address = {"127.0.0.1", ports[static_cast<std::size_t>(i)]};
      place.listen = place.address;
      plan.sites.push_back(place);
    }
    plan.security.insecure = true;
    plan.path.streams = 2;
    plan.path.patience = 30;
    plan.version = "1.0";
    plan.agreement = "gravity.theta = 0.5\ntime.steps = 10\n";
    plan.wait_limit = 60;
    plan.report = [this](const std::string& line) { lines.add(line); };
    for (plan.me = 0; plan.me < count; ++plan.me) {
      plan.restarts = {static_cast<std::uint64_t>(plan.me), 100};
      plans.push_back(plan);
    }
  }
  RingPlan& operator[](int i) { return plans[static_cast<std::size_t>(i)]; }
  int count() const { return static_cast<int>(plans.size()); }
  template <class Change>
  void for_all(Change&& change) {
    for (RingPlan& plan : plans) change(plan);
  }

  std::future<std::unique_ptr<NetRing>> begin(int i) {
    return std::async(std::launch::async,
                      [this, i] { return std::make_unique<NetRing>(plans[static_cast<std::size_t>(i)]); });
  }
};

inline std::vector<std::future<std::unique_ptr<NetRing>>> begin_all(Plans& plans) {
  std::vector<std::future<std::unique_ptr<NetRing>>> begun;
  for (int i = 0; i < plans.count(); ++i) begun.push_back(plans.begin(i));
  return begun;
}

// When all of them stand.
template <class... Begun>
Rings rings_of(Begun&... begun) {
  Rings rings;
  (rings.push_back(begun.get()), ...);
  return rings;
}

inline Rings start(Plans& plans) {
  Rings rings;
  for (auto& one : begin_all(plans)) rings.push_back(one.get());
  return rings;
}

// What each site's start says; empty where it did start.
inline std::vector<std::string> refusals(Plans& plans) {
  std::vector<std::string> texts;
  for (auto& one : begin_all(plans)) texts.push_back(error_of([&] { one.get(); }));
  return texts;
}

// Each site to each other one, sent and published in turns, in every phase; then all of it is received.
inline void talk(const Rings& rings, std::size_t bytes = 100) {
  const int count = static_cast<int>(rings.size());
  const auto seed = [&](int from, int to, Phase phase) {
    return static_cast<unsigned>(1 + from * 100 + (to + 1) * 10 + static_cast<int>(phase));
  };
  for (int from = 0; from < count; ++from) {
    for (const Phase phase : kAll) {
      rings[from]->publish(phase, 1, pattern(bytes, seed(from, -1, phase)));
      for (int to = 0; to < count; ++to)
        if (to != from) rings[from]->send(to, phase, 2, pattern(bytes / 3, seed(from, to, phase)));
      rings[from]->publish(phase, 3, {});
    }
  }
  for (int to = count - 1; to >= 0; --to) {
    for (const Phase phase : kAll) {
      for (int from = 0; from < count; ++from) {
        if (from == to) continue;
        EXPECT_EQ(rings[to]->receive(from, phase, 1), pattern(bytes, seed(from, -1, phase))) << from << to;
        EXPECT_EQ(rings[to]->receive(from, phase, 2), pattern(bytes / 3, seed(from, to, phase))) << from << to;
        EXPECT_TRUE(rings[to]->receive(from, phase, 3).empty());
      }
    }
  }
}

inline void close_all(const Rings& rings) {
  std::vector<std::future<void>> closing;
  for (auto& ring : rings) closing.push_back(std::async(std::launch::async, [&ring] { ring->close(); }));
  for (auto& one : closing) one.get();
}

}  // namespace maki::sites::test
