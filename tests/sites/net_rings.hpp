// Several sites in one process over loopback, for tests.
#pragma once

#include <future>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/wan/net/path/pair.hpp"
#include "wan/net/error.hpp"
#include "wan/net/socket/tcp.hpp"
#include "wan/sites/net_ring.hpp"

namespace maki::sites::test {

using wan::test::pattern;

// Lines of paths go nowhere while it lives (a test provokes many).
struct QuietPaths {
  QuietPaths() {
    wan::set_log_sink([](wan::LogLevel, const std::string&) {});
  }
  ~QuietPaths() { wan::set_log_sink({}); }
};

// Ports of which no two are alike, and nobody listens there now.
inline std::vector<std::uint16_t> free_ports(int count) {
  std::vector<wan::Socket> held;
  std::vector<std::uint16_t> ports;
  for (int i = 0; i < count; ++i) {
    held.push_back(wan::listen_on({"127.0.0.1", 0}, wan::PathSettings{}));
    ports.push_back(wan::local_address(held.back().descriptor()).port());
  }
  return ports;
}

// Plans of sites a, b, c, ... that trust one another.
struct Plans {
  QuietPaths quiet;
  std::vector<RingPlan> plans;
  std::vector<std::string> lines;
  std::mutex mutex;

  explicit Plans(int count) {
    RingPlan plan;
    const auto ports = free_ports(count);
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
    plan.report = [this](const std::string& line) {
      const std::lock_guard lock(mutex);
      lines.push_back(line);
    };
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

inline std::vector<std::unique_ptr<NetRing>> start(Plans& plans) {
  std::vector<std::future<std::unique_ptr<NetRing>>> begun;
  for (int i = 0; i < plans.count(); ++i) begun.push_back(plans.begin(i));
  std::vector<std::unique_ptr<NetRing>> rings;
  for (auto& one : begun) rings.push_back(one.get());
  return rings;
}

// What each site's start says; empty where it did start.
inline std::vector<std::string> refusals(Plans& plans) {
  std::vector<std::future<std::unique_ptr<NetRing>>> begun;
  for (int i = 0; i < plans.count(); ++i) begun.push_back(plans.begin(i));
  std::vector<std::string> texts;
  for (auto& one : begun) {
    try {
      one.get();
      texts.emplace_back();
    } catch (const Error& error) {
      texts.emplace_back(error.what());
    }
  }
  return texts;
}

inline void close_all(std::vector<std::unique_ptr<NetRing>>& rings) {
  std::vector<std::future<void>> closing;
  for (auto& ring : rings) closing.push_back(std::async(std::launch::async, [&ring] { ring->close(); }));
  for (auto& one : closing) one.get();
}

// The error that a call ends with; empty where it returns.
template <class Kind, class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Kind& error) {
    return error.what();
  }
  return "";
}

inline bool has(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace maki::sites::test
