// Identities of peers: keys, and the parties that hold one key.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace maki::wan {

// Pre-shared keys: a small text file with an id and 256 random bits, one for each pair of peers.
struct Key {
  std::string id;                      // 16 hexadecimal digits, public: names the key to the peer
  std::array<std::byte, 32> secret{};  // wiped on destruction
  Key() = default;
  Key(const Key&) = default;
  Key& operator=(const Key&) = default;
  ~Key();

  static Key make();  // from the system's random generator
};

// Throws SecurityError: file missing, readable or writable by group or others, owned by someone else, not a key.
Key read_key(const std::string& path);
// The key in a key file's text; `path` is for messages. Throws SecurityError where the text is not a key.
Key parse_key(std::string_view text, const std::string& path);
// Throws SecurityError where a relay's key is one of the paths' keys: the relay could read what it forwards. Files that
// cannot be read are left to their use.
void check_relay_key(const std::string& relay_key, const std::vector<std::string>& path_keys);
// Throws SecurityError unless the open file is a regular one of this user, not readable or writable by anybody else.
// `what` ("key file") is for messages.
void check_private_file(int descriptor, const std::string& path, const std::string& what);
// Creates the file with mode 0600, never over an existing one. Throws Error.
void write_key(const Key& key, const std::string& path);

std::string to_hex(std::span<const std::byte> bytes);    // two digits a byte, lower case
bool is_hex(std::string_view text, std::size_t digits);  // this many, lower case

using Digest = std::array<std::byte, 32>;
Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> text);
bool same_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b);
void random_bytes(std::span<std::byte> out);  // cryptographic. Throws SecurityError.

// One of the sides that hold the same key: the key proves that a holder is there, not which one. Without it a call
// could be reflected to its own caller, who would take it for the peer's (RFC 9257, section 4.1). Zero: unknown.
using Party = std::array<std::byte, 16>;

// A digest of `name`; if that is empty, of this machine since its boot (containers with a network of their own count as
// machines). Throws SecurityError if OpenSSL fails.
Party party_of(const std::string& name);

}  // namespace maki::wan
