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

using wan::test::comes_true, wan::test::error_of, wan::test::pattern;

constexpr Phase kAll[] = {Phase::kSums,      Phase::kMesh,   Phase::kTrees,
                          Phase::kParticles, Phase::kOutput, Phase::kControl};

inline bool has(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

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

inline std::vector<std::unique_ptr<NetRing>> start(Plans& plans) {
  std::vector<std::unique_ptr<NetRing>> rings;
  for (auto& one : begin_all(plans)) rings.push_back(one.get());
  return rings;
}

// What each site's start says; empty where it did start.
inline std::vector<std::string> refusals(Plans& plans) {
  std::vector<std::string> texts;
  for (auto& one : begin_all(plans)) texts.push_back(error_of<Error>([&] { one.get(); }));
  return texts;
}

inline void close_all(std::vector<std::unique_ptr<NetRing>>& rings) {
  std::vector<std::future<void>> closing;
  for (auto& ring : rings) closing.push_back(std::async(std::launch::async, [&ring] { ring->close(); }));
  for (auto& one : closing) one.get();
}

}  // namespace maki::sites::test
