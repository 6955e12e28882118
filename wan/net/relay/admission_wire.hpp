// The three messages of an admission as bytes. Fixed sizes, little-endian; nothing in them says how long anything is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "wan/net/secure/channel.hpp"
#include "wan/net/secure/key.hpp"

namespace maki::wan::admission {

inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kChallengeBytes = 48;
inline constexpr std::size_t kRequestBytes = 160;
inline constexpr std::size_t kVerdictBytes = 160;
inline constexpr std::size_t kMaxName = 63;
inline constexpr std::size_t kMaxReason = 111;
inline constexpr std::size_t kKeyIdBytes = 16;

using Nonce = std::array<std::byte, 32>;
using ChallengeBytes = std::array<std::byte, kChallengeBytes>;
using RequestBytes = std::array<std::byte, kRequestBytes>;
using VerdictBytes = std::array<std::byte, kVerdictBytes>;

// relay -> peer
struct Challenge {
  std::uint32_t version = kVersion;
  Nonce nonce{};
};

enum class Want : std::uint32_t {
  kConnect = 1,  // name: whom to
  kListen = 2,   // name: what to be called
  kAnswer = 3,   // name: the token of a call
};

// peer -> relay
struct Request {
  Want want = Want::kConnect;
  std::string name;    // 1 to kMaxName bytes, printable, no blanks
  std::string key_id;  // 16 hexadecimal digits
  Nonce nonce{};       // the peer's own: a recorded verdict cannot be played to it again
};

enum class Code : std::uint32_t {
  kAdmitted = 0,
  kKey = 1,          // the relay does not have that key, or the answer was not made with it
  kNobody = 2,       // no one of that name now
  kUnreachable = 3,  // of that name, but it did not answer
  kBusy = 4,         // too many sessions
  kRefused = 5,      // for good; the reason says why
};

// relay -> peer
struct Verdict {
  Code code = Code::kAdmitted;
  std::string reason;  // at most kMaxReason bytes, printable
  bool try_again() const { return code == Code::kNobody || code == Code::kUnreachable || code == Code::kBusy; }
};

bool valid_name(const std::string& name);

ChallengeBytes encode(const Challenge& challenge);
// The code is HMAC-SHA256 under `key` of a label, the relay's nonce and the request. Throws Error for a bad name.
RequestBytes encode(const Request& request, const Nonce& relay_nonce, const Key& key);
// Signed over the request too; without a key (the relay has none to sign with) the code is zero.
VerdictBytes encode(const Verdict& verdict, const RequestBytes& request, const Nonce& relay_nonce, const Key* key);

// Throw ProtocolError for anything that encode() cannot have made. A challenge of another version is decoded as far as its
// version field.
Challenge decode_challenge(std::span<const std::byte, kChallengeBytes> bytes);
Request decode_request(std::span<const std::byte, kRequestBytes> bytes);
Verdict decode_verdict(std::span<const std::byte, kVerdictBytes> bytes);

// In constant time.
bool signed_with(const Key& key, const RequestBytes& request, const Nonce& relay_nonce);
bool signed_with(const Key& key, const VerdictBytes& verdict, const RequestBytes& request, const Nonce& relay_nonce);

// Bytes of a known number on their way through a socket that does not block.
class Transfer {
 public:
  explicit Transfer(std::size_t size) : bytes_(size) {}
  explicit Transfer(std::span<const std::byte> bytes) : bytes_(bytes.begin(), bytes.end()) {}
  // Until kDone. kClosed: the peer or the network ended the connection.
  IoStatus send(int descriptor);
  IoStatus receive(int descriptor);  // never beyond the size
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
  std::size_t done_ = 0;
};

// What a Transfer received, as an array.
template <std::size_t size>
std::array<std::byte, size> to_array(const Transfer& transfer) {
  std::array<std::byte, size> bytes;
  const std::span<const std::byte> from = transfer.bytes();
  for (std::size_t i = 0; i < size; ++i) bytes[i] = from[i];
  return bytes;
}

}  // namespace maki::wan::admission
