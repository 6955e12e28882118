#include "wan/net/mpw/greeting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "wan/net/byte_codec.hpp"

namespace maki::wan::mpw {
namespace {

constexpr std::uint32_t kMagic = 0x3157504d;  // "MPW1"

std::string text(const std::vector<int>& ports) {
  const bool run = ports.back() - ports.front() + 1 == static_cast<int>(ports.size());
  if (run && ports.size() > 2) return fmt::format("{} to {}", ports.front(), ports.back());
  std::string list;
  for (const int port : ports) list += (list.empty() ? "" : ", ") + std::to_string(port);
  return list;
}

}  // namespace

std::vector<std::byte> encode(const Greeting& greeting) {
  ByteWriter out;
  out.put(kMagic);
  out.put(static_cast<std::uint32_t>(greeting.ports.size()));
  out.put(greeting.ticket);
  for (const int port : greeting.ports) out.put(static_cast<std::uint32_t>(port));
  return out.take();
}

Greeting decode_greeting(std::span<const std::byte> bytes) {
  ByteReader in(bytes, "The peer's greeting", "The peer's greeting is broken");
  if (bytes.size() < 16 || in.number<std::uint32_t>() != kMagic)
    throw ProtocolError("The peer is no program with MPWide's calls", "its first message is something else");
  const auto count = in.number<std::uint32_t>();
  if (count < 1 || count > kMaxChannels || bytes.size() != 16 + std::size_t{4} * count)
    in.fail(fmt::format("{} channels in {} bytes", count, bytes.size()));
  Greeting greeting{in.number<std::uint64_t>(), {}};
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto port = in.number<std::uint32_t>();
    if (port < 1 || port > 65535 || (i > 0 && static_cast<int>(port) < greeting.ports.back()))
      in.fail(fmt::format("port {} at place {}", port, i));
    greeting.ports.push_back(static_cast<int>(port));
  }
  return greeting;
}

std::vector<int> partners(const std::vector<int>& mine, const std::vector<int>& theirs) {
  std::vector<int> common;
  std::set_intersection(mine.begin(), mine.end(), theirs.begin(), theirs.end(), std::back_inserter(common));
  if (!common.empty()) return common;
  if (mine.size() == theirs.size()) return mine;
  throw Error("The two sides' channels do not match", fmt::format("ports {} here, {} there", text(mine), text(theirs)),
              "give both sides the same ports, or at least as many");
}

}  // namespace maki::wan::mpw
