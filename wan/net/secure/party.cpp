#include "wan/net/secure/party.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <span>

#include "wan/net/secure/key.hpp"

namespace maki::wan {
namespace {

// Not its name, nor /etc/machine-id: machines are set up as copies of one another.
std::string this_machine() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 64> network{};
  const ssize_t size = ::readlink("/proc/self/ns/net", network.data(), network.size());
  if (!boot.empty() && size > 0) return boot + " " + std::string(network.data(), static_cast<std::size_t>(size));
  static const Key process = Key::make();  // at least this process
  return process.id;
}

}  // namespace

Party party_of(const std::string& name) {
  const std::string text = name.empty() ? "machine " + this_machine() : "name " + name;
  const std::string label = "maki wan party 1";
  const Digest digest = hmac_sha256(std::as_bytes(std::span(label)), std::as_bytes(std::span(text)));
  Party party;
  std::copy_n(digest.begin(), party.size(), party.begin());
  return party;
}

}  // namespace maki::wan
