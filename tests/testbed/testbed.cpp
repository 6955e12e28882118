#include "tests/testbed/testbed.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "wan/net/error.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::testbed {
namespace {

constexpr int kMaxSites = 64;

std::vector<std::pair<int, int>> pairs_of(const TestbedSettings& s) {
  std::vector<std::pair<int, int>> pairs;
  for (int a = 0; a < s.sites; ++a)
    for (int b = a + 1; b < s.sites; ++b)
      if (s.topology == Topology::kMesh || b == a + 1 || (s.topology == Topology::kRing && a == 0 && b == s.sites - 1))
        pairs.emplace_back(a, b);
  return pairs;
}

std::string next_name(int site) {
  static std::atomic<int> testbeds{0};  // several in one process
  thread_local int current = 0;
  if (site == 0) current = testbeds++;
  return namespace_name(fmt::format("{}-{}", current, site));
}

constexpr std::size_t kLongestRequest = 200;
const std::string kFolder = "/run", kPrefix = "maki-testbed-";

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw wan::Error(path + " is too long for a Unix socket");
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

template <class Work>
void for_links(Testbed& testbed, const std::string& name, Work work) {
  bool found = false;
  for (Testbed::Link& link : testbed.links())
    if (name.empty() || name == link.name()) {
      work(link);
      found = true;
    }
  if (!found) throw wan::Error("there is no link " + name, "", "its name is of two sites, as in 0-1");
}

std::string counters_line(const std::string& name, const LinkCounters& c) {
  return fmt::format("{:<8} {:>11} {:>14} {:>11} {:>11} {:>11} {:>14} {:>7}\n", name, c.packets, c.bytes, c.queue_drops,
                     c.loss_drops, c.cut_drops, c.greatest_queue, c.late);
}

void reply(int connection, const std::string& text) {
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n = send(connection, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return;
    sent += static_cast<std::size_t>(n);
  }
}

std::string read_all(int connection, std::size_t limit, bool line) {
  std::string text;
  char piece[512];
  while (text.size() < limit && !(line && text.find('\n') != std::string::npos)) {
    const ssize_t n = recv(connection, piece, sizeof piece, 0);
    if (n <= 0) break;
    text.append(piece, static_cast<std::size_t>(n));
  }
  return text;
}

}  // namespace

std::map<std::string, std::string> tcp_limits(std::size_t rmem, std::size_t wmem, const std::string& congestion) {
  std::map<std::string, std::string> kernel;
  if (rmem > 0) kernel["net.ipv4.tcp_rmem"] = fmt::format("4096 {} {}", std::min<std::size_t>(131072, rmem), rmem);
  if (wmem > 0) kernel["net.ipv4.tcp_wmem"] = fmt::format("4096 {} {}", std::min<std::size_t>(16384, wmem), wmem);
  if (!congestion.empty()) kernel["net.ipv4.tcp_congestion_control"] = congestion;
  return kernel;
}

Testbed::Testbed(const TestbedSettings& s) {
  if (s.sites < 2 || s.sites > kMaxSites)
    throw wan::Error(fmt::format("sites = {} is out of range", s.sites), fmt::format("2 to {}", kMaxSites));
  if (const std::string reason = why_not(); !reason.empty()) throw wan::Error("no emulated links here", reason);
  remove_stale();
  spaces_.reserve(static_cast<std::size_t>(s.sites));
  for (int i = 0; i < s.sites; ++i) {
    const Namespace& space = spaces_.emplace_back(next_name(i));
    // No packets but the programs': none to look for routers and listeners.
    space.set("net.ipv6.conf.default.addr_gen_mode", "1");
    // Runs in sequence must not learn from one another.
    space.set("net.ipv4.tcp_no_metrics_save", "1");
    for (const auto& [setting, value] : s.kernel) space.set(setting, value);
  }
  const auto pairs = pairs_of(s);
  if (!s.rates.empty() && (s.topology == Topology::kMesh || s.rates.size() != pairs.size()))
    throw wan::Error(fmt::format("{} rates for {} links", s.rates.size(), pairs.size()), "",
                     "give one, or one for each in a line or ring");
  for (const auto& [a, b] : pairs) {
    LinkSettings link = s.link;
    if (!s.rates.empty()) link.rate = s.rates[static_cast<std::size_t>(b == a + 1 ? a : b)];
    join(a, b, link);
  }
}

void Testbed::join(int a, int b, const LinkSettings& settings) {
  const auto end = [&](int own, int other) {
    return LinkEnd{site(own).name(), fmt::format("wan{}", other), address(own), address6(own)};
  };
  LinkSettings own = settings;
  own.seed = settings.seed * 1000 + static_cast<std::uint64_t>(a * kMaxSites + b);
  links_.push_back({a, b, EmulatedLink(end(a, b), end(b, a), own)});
}

std::string Testbed::Link::name() const { return fmt::format("{}-{}", a, b); }
std::string Testbed::address(int i) const { return fmt::format("10.77.0.{}", i + 1); }
std::string Testbed::address6(int i) const { return fmt::format("fd77::{:x}", i + 1); }

EmulatedLink& Testbed::link(int a, int b) {
  for (Link& l : links_)
    if ((l.a == a && l.b == b) || (l.a == b && l.b == a)) return l.link;
  throw wan::Error(fmt::format("there is no link between sites {} and {}", a, b));
}

std::string control_path(pid_t process) { return fmt::format("{}/{}{}.socket", kFolder, kPrefix, process); }

void remove_stale_sockets() {
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    const long process = std::atol(name.c_str() + kPrefix.size());
    if (process > 0 && kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH) unlink(entry.path().c_str());
  }
}

std::string counters_text(Testbed& testbed, const std::string& link) {
  std::string text = fmt::format("{:<8} {:>11} {:>14} {:>11} {:>11} {:>11} {:>14} {:>7}\n", "link", "packets", "bytes",
                                 "queue_drops", "loss_drops", "cut_drops", "greatest_queue", "late");
  for_links(testbed, link, [&](Testbed::Link& l) {
    text += counters_line(fmt::format("{}>{}", l.a, l.b), l.link.forth());
    text += counters_line(fmt::format("{}>{}", l.b, l.a), l.link.back());
  });
  return text;
}

std::string answer(Testbed& testbed, const std::string& request) {
  std::istringstream words(request);
  std::string what, link;
  double probability = 0;
  words >> what;
  if (what == "loss" && !(words >> probability && probability >= 0 && probability <= 1))
    throw wan::Error("loss needs a probability", "0 to 1", "loss 1e-4");
  words >> link;
  if (what == "cut")
    for_links(testbed, link, [](Testbed::Link& l) { l.link.cut(); });
  else if (what == "restore")
    for_links(testbed, link, [](Testbed::Link& l) { l.link.restore(); });
  else if (what == "loss")
    for_links(testbed, link, [&](Testbed::Link& l) { l.link.set_loss(probability); });
  else if (what == "counters")
    return counters_text(testbed, link);
  else
    throw wan::Error("'" + what + "' is not known", "", "cut, restore, loss, counters");
  return "done\n";
}

Control::Control(Testbed& testbed, const std::string& path) : testbed_(testbed), path_(path) {
  const sockaddr_un address = address_of(path);
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  unlink(path.c_str());
  if (listener_ < 0 || bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener_, 8) != 0)
    throw wan::Error("no control socket at " + path, std::strerror(errno));
  thread_ = std::thread([this] { run(); });
}

Control::~Control() {
  stopping_ = true;
  shutdown(listener_, SHUT_RDWR);  // wakes the thread
  thread_.join();
  close(listener_);
  unlink(path_.c_str());
}

void Control::run() {
  while (!stopping_) {
    const wan::Socket connection(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.open()) continue;
    const timeval patience{2, 0};
    setsockopt(connection.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    try {
      reply(connection.descriptor(), answer(testbed_, read_all(connection.descriptor(), kLongestRequest, true)));
    } catch (const std::exception& error) {
      reply(connection.descriptor(), fmt::format("error: {}\n", error.what()));
    }
  }
}

std::string ask(const std::string& path, const std::string& request) {
  const sockaddr_un address = address_of(path);
  const wan::Socket connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(connection.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw wan::Error("no testbed at " + path, std::strerror(errno), "MAKI_TESTBED names the socket of a running one");
  reply(connection.descriptor(), request + "\n");
  const std::string text = read_all(connection.descriptor(), std::size_t{1} << 20, false);
  if (text.starts_with("error: ")) throw wan::Error(text.substr(7, text.size() - 8));
  return text;
}

}  // namespace maki::testbed
