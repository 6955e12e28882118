#include "wan/net/mpw/greeting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace maki::wan::mpw {
namespace {

constexpr std::uint32_t kMagic = 0x3157504d;  // "MPW1"

void put(std::vector<std::byte>& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

std::uint64_t get(std::span<const std::byte> bytes, std::size_t at, int count) {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i)
    value |= std::to_integer<std::uint64_t>(bytes[at + static_cast<std::size_t>(i)]) << (8 * i);
  return value;
}

std::string text(const std::vector<int>& ports) {
  const bool run = ports.back() - ports.front() + 1 == static_cast<int>(ports.size());
  if (run && ports.size() > 2) return fmt::format("{} to {}", ports.front(), ports.back());
  std::string list;
  for (const int port : ports) list += (list.empty() ? "" : ", ") + std::to_string(port);
  return list;
}

}  // namespace

std::vector<std::byte> encode(const Greeting& greeting) {
  std::vector<std::byte> bytes;
  put(bytes, kMagic, 4);
  put(bytes, greeting.ports.size(), 4);
  put(bytes, greeting.ticket, 8);
  for (const int port : greeting.ports) put(bytes, static_cast<std::uint64_t>(port), 4);
  return bytes;
}

Greeting decode_greeting(std::span<const std::byte> bytes) {
  if (bytes.size() < 16 || get(bytes, 0, 4) != kMagic)
    throw ProtocolError("The peer is no program with MPWide's calls", "its first message is something else");
  const std::uint64_t count = get(bytes, 4, 4);
  if (count < 1 || count > kMaxChannels || bytes.size() != 16 + 4 * count)
    throw ProtocolError("The peer's greeting is broken", fmt::format("{} channels in {} bytes", count, bytes.size()));
  Greeting greeting{get(bytes, 8, 8), {}};
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t port = get(bytes, 16 + 4 * i, 4);
    if (port < 1 || port > 65535 || (i > 0 && static_cast<int>(port) < greeting.ports.back()))
      throw ProtocolError("The peer's greeting is broken", fmt::format("port {} at place {}", port, i));
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
