// Admission of a peer to a relay, before any of its own data. The relay speaks first.
//
//   relay -> peer   magic, version, a nonce of 32 random bytes
//   peer -> relay   its request (connect TARGET, listen NAME, answer a call by TOKEN), key id, a nonce of its own,
//                   HMAC-SHA256 of the relay's nonce and all this under the relay's key
//   relay -> peer   a verdict, with a reason as text, and an HMAC of all before it: the relay holds the key too
//
// After the verdict the socket carries the peers' own bytes, untouched. All messages have fixed sizes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "wan/net/secure/key.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan::admission {

// The three messages of an admission as bytes. Fixed sizes, little-endian; a text has its length
// before it and zeros behind it.

inline constexpr std::uint32_t kVersion = 2;
inline constexpr std::size_t kChallengeBytes = 48;
inline constexpr std::size_t kRequestBytes = 161;
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
  kConnect = 1,  // name: the target
  kListen = 2,   // name: the listener's own
  kAnswer = 3,   // name: the token of a call
};

// peer -> relay
struct Request {
  Want want = Want::kConnect;
  std::string name;    // 1 to kMaxName bytes, printable, no blanks
  std::string key_id;  // 16 hexadecimal digits
  Nonce nonce{};       // the peer's own: prevents replay of a recorded verdict
};

enum class Code : std::uint32_t {
  kAdmitted = 0,
  kKey = 1,          // the relay does not have that key, or the HMAC is wrong
  kNobody = 2,       // nobody of that name now
  kUnreachable = 3,  // found, but it did not answer
  kBusy = 4,         // too many sessions
  kRefused = 5,      // permanently; the reason says why
};

// relay -> peer
struct Verdict {
  Code code = Code::kAdmitted;
  std::string reason;  // at most kMaxReason bytes, printable
  bool try_again() const { return code == Code::kNobody || code == Code::kUnreachable || code == Code::kBusy; }
};

bool valid_name(const std::string& name);

ChallengeBytes encode(const Challenge& challenge);
// The HMAC is HMAC-SHA256 under `key` of a label, the relay's nonce and the request. Throws Error for a bad name.
RequestBytes encode(const Request& request, const Nonce& relay_nonce, const Key& key);
// Signed over the request too; without a key (the relay has none to sign with) the HMAC is zero.
VerdictBytes encode(const Verdict& verdict, const RequestBytes& request, const Nonce& relay_nonce, const Key* key);

// Throw ProtocolError for anything that encode() cannot have produced. A challenge of another version is decoded up to
// its version field.
Challenge decode_challenge(std::span<const std::byte, kChallengeBytes> bytes);
Request decode_request(std::span<const std::byte, kRequestBytes> bytes);
Verdict decode_verdict(std::span<const std::byte, kVerdictBytes> bytes);

// In constant time.
bool signed_with(const Key& key, const RequestBytes& request, const Nonce& relay_nonce);
bool signed_with(const Key& key, const VerdictBytes& verdict, const RequestBytes& request, const Nonce& relay_nonce);

}  // namespace maki::wan::admission

namespace maki::wan {

// The peer's side on a connected socket: call progress() when the socket is ready, until kDone.
class RelayAdmission {
 public:
  // Throws Error for an invalid name.
  RelayAdmission(const Key& key, admission::Want want, const std::string& name);
  // Reads no byte beyond the verdict. kClosed if the relay closed the connection. Throws SecurityError if the key was
  // refused or the relay does not hold it, ProtocolError if it is no relay, Error for any other refusal (unknown
  // target, not there now: `try_again()` tells).
  IoStatus progress(int descriptor);
  bool try_again() const { return try_again_; }

 private:
  void reply();
  void judge();

  Key key_;
  admission::Request request_;
  Transfer challenge_{admission::kChallengeBytes}, reply_, verdict_{admission::kVerdictBytes};
  admission::Nonce relay_nonce_{};
  admission::RequestBytes request_bytes_{};
  bool try_again_ = false;
};

// The keys that a relay admits, by id.
class KeyRing {
 public:
  // Files, and directories whose *.key files all count. Throws SecurityError: none, unreadable, unsafe, or one id with
  // two secrets.
  static KeyRing read(const std::vector<std::string>& files);
  void add(const Key& key);
  const Key* find(const std::string& id) const;
  std::size_t size() const { return keys_.size(); }

 private:
  std::map<std::string, Key> keys_;
};

// The relay's side of one socket's admission. receive() until kDone; then admitted() and request() are valid; decide(),
// then send_verdict() until kDone.
class AdmissionCheck {
 public:
  explicit AdmissionCheck(const KeyRing& keys);
  // kDone: the request is complete. Throws ProtocolError if it is none.
  IoStatus receive(int descriptor);
  bool admitted() const { return key_ != nullptr; }
  const admission::Request& request() const { return request_; }
  void decide(const admission::Verdict& verdict);
  IoStatus send_verdict(int descriptor) { return verdict_.send(descriptor); }

 private:
  const KeyRing& keys_;
  admission::Nonce nonce_{};
  Transfer challenge_, incoming_, verdict_;
  admission::RequestBytes request_bytes_{};
  admission::Request request_;
  const Key* key_ = nullptr;
};

}  // namespace maki::wan
