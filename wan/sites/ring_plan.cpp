#include "wan/sites/ring_plan.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "kernels/error.hpp"
#include "wan/net/byte_codec.hpp"
#include "wan/net/error.hpp"
#include "wan/net/secure/key.hpp"
#include "wan/sites/ring.hpp"

namespace maki::sites {
namespace {

constexpr std::size_t kLongestName = 63;  // of a path

}  // namespace

int caller_of(const RingPlan& plan, int left, int right) {
  const SitePlace &a = plan.site(left), &b = plan.site(right);
  const bool direct_a = a.callable() && !a.relay.used(), direct_b = b.callable() && !b.relay.used();
  if (direct_b) return left;
  if (direct_a) return right;
  if (b.callable()) return left;
  if (a.callable()) return right;
  throw Error("sites " + a.name + " and " + b.name + " are neighbours and cannot reach each other",
              "neither has an address where it can be called", "give one of them an address or a relay");
}

void check(const RingPlan& plan) {
  const int count = static_cast<int>(plan.sites.size());
  if (plan.sites.size() > kMostSites)
    throw Error("a ring of " + std::to_string(count) + " sites", "",
                "at most " + std::to_string(kMostSites) + " make one");
  if (count < 2) throw Error("a ring of " + std::to_string(count) + " sites", "", "two or more make one");
  if (plan.me < 0 || plan.me >= count)
    throw Error("place " + std::to_string(plan.me) + " in a ring of " + std::to_string(count) + " sites");
  std::set<std::string> names;
  for (const SitePlace& site : plan.sites) {
    if (site.name.empty() || site.name.size() > kLongestName)
      throw Error("a site is named '" + site.name + "'", "names have 1 to " + std::to_string(kLongestName) + " bytes");
    if (!names.insert(site.name).second) throw Error("two sites are named " + site.name);
  }
  for (int i = 0; i < (count == 2 ? 1 : count); ++i) caller_of(plan, i, (i + 1) % count);
}

namespace {

// The left one of this site and a neighbour; in a ring of two sites, the first site.
int left_of(const RingPlan& plan, int neighbour) {
  const int count = static_cast<int>(plan.sites.size());
  if (count == 2) return 0;
  return (plan.me + 1) % count == neighbour ? plan.me : neighbour;
}

// Adds a key file. Throws SecurityError for a second key of the same id: with it one neighbour could pose as the other.
void add_key(std::vector<std::string>& files, const std::string& file) {
  const wan::Key key = wan::read_key(file);
  for (const std::string& other : files) {
    const wan::Key there = wan::read_key(other);
    if (there.id != key.id) continue;
    if (wan::same_in_constant_time(there.secret, key.secret)) return;
    throw wan::SecurityError("cannot use key file " + file, "it holds another key than " + other + " under the same id",
                             "make a new one with 'maki wan keygen'");
  }
  files.push_back(file);
}

}  // namespace

std::vector<int> neighbours(const RingPlan& plan) {
  const int count = static_cast<int>(plan.sites.size());
  const int right = (plan.me + 1) % count, left = (plan.me + count - 1) % count;
  return count == 2 ? std::vector{right} : std::vector{right, left};
}

bool calls_us(const RingPlan& plan, int neighbour) {
  const int left = left_of(plan, neighbour);
  return caller_of(plan, left, left == plan.me ? neighbour : plan.me) != plan.me;
}

LinkPlan link_to(const RingPlan& plan, int neighbour) {
  const SitePlace& left = plan.site(left_of(plan, neighbour));
  LinkPlan link = left.onward ? *left.onward : LinkPlan{plan.path, plan.security};
  if (link.security.own_name.empty()) link.security.own_name = plan.here().name;
  return link;
}

LinkPlan listening_plan(const RingPlan& plan) {
  LinkPlan listening;
  bool first = true;
  for (const int neighbour : neighbours(plan)) {
    if (!calls_us(plan, neighbour)) continue;
    const LinkPlan link = link_to(plan, neighbour);
    if (std::exchange(first, false)) {
      listening = link;
      for (const std::string& file : link.security.key_files) wan::read_key(file);
      continue;
    }
    for (const std::string& file : link.security.key_files) add_key(listening.security.key_files, file);
    listening.path.window = std::max(listening.path.window, link.path.window);
    listening.path.unmatched_limit = std::max(listening.path.unmatched_limit, link.path.unmatched_limit);
    listening.path.message_limit = std::max(listening.path.message_limit, link.path.message_limit);
    listening.path.patience = std::max(listening.path.patience, link.path.patience);
  }
  return listening;
}

std::string key_id(const LinkPlan& link) {
  return link.security.key_files.empty() ? "" : wan::read_key(link.security.key_files.front()).id;
}

std::string shared_key_warning(const RingPlan& plan) {
  const std::vector<int> with = neighbours(plan);
  if (with.size() < 2) return "";
  const LinkPlan right = link_to(plan, with[0]), left = link_to(plan, with[1]);
  const std::string names = "sites " + plan.site(with[0]).name + " and " + plan.site(with[1]).name;
  if (!right.security.certificate.empty() && !left.security.certificate.empty())
    return names +
           " show certificates: each of them could pose as the other (a key for each link would tell them apart: "
           "sites.NAME.key)";
  const std::string id = key_id(right);
  if (id.empty() || id != key_id(left)) return "";
  return names + " hold the same key, " + id +
         ": each of them could pose as the other (give each link a key of its own: "
         "sites.NAME.key)";
}

// ---- the hello of a site -------------------------------------------------------------------------------------------

namespace {

constexpr std::uint64_t kMagic = 0x31474e49524b414dull;  // "MAKRING1"
constexpr std::size_t kMostShown = 5;                    // differing lines

// Text of a peer for the user's terminal, in its whole length.
std::string printable(const std::string& text) { return wan::printable(text, std::string::npos); }

void put_text(wan::ByteWriter& out, const std::string& text) { out.put_text<std::uint64_t>(text, text.size()); }
std::string get_text(wan::ByteReader& in) { return in.text<std::uint64_t>(kLongestHello); }

// The number of texts or words that follow, each of which takes eight bytes at least.
std::uint64_t get_count(wan::ByteReader& in, std::uint64_t most) {
  return in.number(std::min<std::uint64_t>(most, in.left() / sizeof(std::uint64_t)), "a count is too high");
}

Error no_hello() {
  return Error("what calls is no site of a run", "its first words are not understood",
               "look at the addresses of the sites");
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + printable(name);
  return text;
}

std::map<std::string, std::string> lines_of(const std::string& agreement) {
  std::map<std::string, std::string> lines;
  std::istringstream stream(agreement);
  for (std::string line; std::getline(stream, line);) {
    const auto equals = line.find(" = ");
    if (line.empty()) continue;
    if (equals == std::string::npos)
      lines[printable(line)] = "";
    else
      lines[printable(line.substr(0, equals))] = printable(line.substr(equals + 3));
  }
  return lines;
}

void compare_lines(const Hello& ours, const Hello& theirs, std::vector<std::string>& found) {
  const auto here = lines_of(ours.agreement), there = lines_of(theirs.agreement);
  auto keys = here;
  keys.insert(there.begin(), there.end());
  std::size_t differ = 0;
  for (const auto& [key, unused] : keys) {
    const auto a = here.find(key), b = there.find(key);
    if (a != here.end() && b != there.end() && a->second == b->second) continue;
    if (++differ > kMostShown) continue;
    const auto value = [&](const auto& at, const auto& lines) {
      return at == lines.end() ? std::string("not set") : at->second.empty() ? "set" : at->second;
    };
    found.push_back(key + " is " + value(a, here) + " at site " + ours.name + " and " + value(b, there) + " at site " +
                    theirs.name);
  }
  if (differ > kMostShown) found.push_back("and " + std::to_string(differ - kMostShown) + " more");
}

Hello read_hello(std::span<const std::byte> bytes) {
  wan::ByteReader in(bytes, "a hello", "a hello makes no sense");
  if (in.number<std::uint64_t>() != kMagic) throw no_hello();
  Hello hello;
  hello.protocol = in.number<std::uint32_t>();
  hello.purpose = in.number<Purpose>();
  hello.version = printable(get_text(in));
  hello.name = printable(get_text(in));
  if (hello.protocol != kRingProtocol) return hello;
  const std::uint64_t sites = get_count(in, kMostSites);
  for (std::uint64_t i = 0; i < sites; ++i) hello.ring.push_back(get_text(in));
  hello.agreement = get_text(in);
  const std::uint64_t restarts = get_count(in, kMostRestarts);
  for (std::uint64_t i = 0; i < restarts; ++i) hello.restarts.push_back(in.number<std::uint64_t>());
  hello.clock = in.number<double>();
  return hello;
}

}  // namespace

Hello hello_of(const RingPlan& plan, Purpose purpose) {
  Hello hello;
  hello.purpose = purpose;
  hello.version = plan.version;
  hello.name = plan.here().name;
  for (const SitePlace& site : plan.sites) hello.ring.push_back(site.name);
  hello.agreement = plan.agreement;
  hello.restarts = plan.restarts;
  hello.clock = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return hello;
}

// The first five fields stay in place in all future protocols.
Message encode(const Hello& hello) {
  wan::ByteWriter out;
  out.put(kMagic);
  out.put(hello.protocol);
  out.put(hello.purpose);
  put_text(out, hello.version);
  put_text(out, hello.name);
  out.put(static_cast<std::uint64_t>(hello.ring.size()));
  for (const std::string& name : hello.ring) put_text(out, name);
  put_text(out, hello.agreement);
  const auto restarts = std::span(hello.restarts).last(std::min(hello.restarts.size(), kMostRestarts));
  out.put(static_cast<std::uint64_t>(restarts.size()));
  for (const std::uint64_t step : restarts) out.put(step);
  out.put(hello.clock);
  return out.take();
}

Hello decode_hello(std::span<const std::byte> bytes) {
  if (bytes.size() > kLongestHello) throw no_hello();
  return translate_errors([&] { return read_hello(bytes); }, [](const std::string&) { return no_hello(); });
}

std::vector<std::string> differences(const Hello& ours, const Hello& theirs) {
  std::vector<std::string> found;
  if (ours.version != theirs.version)
    found.push_back("site " + ours.name + " runs version " + ours.version + " and site " + theirs.name + " version " +
                    theirs.version);
  if (ours.protocol != theirs.protocol) {
    found.push_back("site " + ours.name + " speaks version " + std::to_string(ours.protocol) +
                    " of the protocol between sites and site " + theirs.name + " version " +
                    std::to_string(theirs.protocol));
    return found;
  }
  if (ours.ring != theirs.ring)
    found.push_back("the ring is " + list(ours.ring) + " at site " + ours.name + " and " + list(theirs.ring) +
                    " at site " + theirs.name);
  compare_lines(ours, theirs, found);
  return found;
}

}  // namespace maki::sites
