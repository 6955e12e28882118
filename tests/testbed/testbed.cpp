#include "tests/testbed/testbed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "wan/net/error.hpp"

namespace maki::testbed {
namespace {

constexpr int kMaxSites = 64;

std::vector<std::pair<int, int>> pairs_of(const TestbedSettings& s) {
  std::vector<std::pair<int, int>> pairs;
  for (int a = 0; a < s.sites; ++a)
    for (int b = a + 1; b < s.sites; ++b)
      if (b == a + 1 || (s.ring && a == 0 && b == s.sites - 1)) pairs.emplace_back(a, b);
  return pairs;
}

std::string next_name(int site) {
  static std::atomic<int> testbeds{0};  // several in one process
  thread_local int current = 0;
  if (site == 0) current = testbeds++;
  return namespace_name(fmt::format("{}-{}", current, site));
}

std::string counters_line(const std::string& name, const LinkCounters& c) {
  return fmt::format("{:<8} {:>11} {:>14} {:>11} {:>11} {:>14} {:>7}\n", name, c.packets, c.bytes, c.queue_drops,
                     c.loss_drops, c.greatest_queue, c.late);
}

}  // namespace

std::map<std::string, std::string> tcp_limits(std::size_t rmem, std::size_t wmem) {
  std::map<std::string, std::string> kernel;
  if (rmem > 0) kernel["net.ipv4.tcp_rmem"] = fmt::format("4096 {} {}", std::min<std::size_t>(131072, rmem), rmem);
  if (wmem > 0) kernel["net.ipv4.tcp_wmem"] = fmt::format("4096 {} {}", std::min<std::size_t>(16384, wmem), wmem);
  return kernel;
}

Testbed::Testbed(const TestbedSettings& s) {
  if (s.sites < 2 || s.sites > kMaxSites)
    throw wan::Error(fmt::format("sites = {} is out of range", s.sites), fmt::format("2 to {}", kMaxSites));
  if (const std::string reason = why_not(); !reason.empty()) throw wan::Error("no emulated links here", reason);
  remove_stale();
  for (int i = 0; i < s.sites; ++i) {
    const Namespace& space = spaces_.emplace_back(next_name(i));
    // No packets but the programs': none to look for routers and listeners.
    space.set("net.ipv6.conf.default.addr_gen_mode", "1");
    // Runs in sequence must not learn from one another.
    space.set("net.ipv4.tcp_no_metrics_save", "1");
    for (const auto& [setting, value] : s.kernel) space.set(setting, value);
  }
  const auto pairs = pairs_of(s);
  if (!s.rates.empty() && s.rates.size() != pairs.size())
    throw wan::Error(fmt::format("{} rates for {} links", s.rates.size(), pairs.size()), "",
                     "give one, or one for each");
  const auto end = [this](int own, int other) {
    return LinkEnd{site(own).name(), fmt::format("wan{}", other), address(own), address6(own)};
  };
  for (const auto& [a, b] : pairs) {
    LinkSettings link = s.link;
    if (!s.rates.empty()) link.rate = s.rates[static_cast<std::size_t>(b == a + 1 ? a : b)];
    link.seed = s.link.seed * 1000 + static_cast<std::uint64_t>(a * kMaxSites + b);
    links_.push_back({a, b, EmulatedLink(end(a, b), end(b, a), link)});
  }
}

std::string Testbed::address(int i) const { return fmt::format("10.77.0.{}", i + 1); }
std::string Testbed::address6(int i) const { return fmt::format("fd77::{:x}", i + 1); }

std::string counters_text(const Testbed& testbed) {
  std::string text = fmt::format("{:<8} {:>11} {:>14} {:>11} {:>11} {:>14} {:>7}\n", "link", "packets", "bytes",
                                 "queue_drops", "loss_drops", "greatest_queue", "late");
  for (const Testbed::Link& l : testbed.links()) {
    text += counters_line(fmt::format("{}>{}", l.a, l.b), l.link.forth());
    text += counters_line(fmt::format("{}>{}", l.b, l.a), l.link.back());
  }
  return text;
}

}  // namespace maki::testbed
