#include "wan/sites/hello.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <sstream>

#include "wan/net/byte_codec.hpp"
#include "wan/net/error.hpp"
#include "wan/sites/ring.hpp"

namespace maki::sites {

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
  hello.name = plan.sites[static_cast<std::size_t>(plan.me)].name;
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
