// Who may be at the other end: keys, and who a side is among those that hold its key.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace maki::wan {

// Pre-shared keys: a small text file with an id and 256 random bits, one for each pair of peers.
struct Key {
  std::string id;                      // 16 hexadecimal digits, public: tells the peer which key is meant
  std::array<std::byte, 32> secret{};  // wiped when the Key ends
  Key() = default;
  Key(const Key&) = default;
  Key& operator=(const Key&) = default;
  ~Key();

  static Key make();  // from the system's random generator
};

// Throws SecurityError: file missing, readable or writable by others (group and all), owned by someone else, not a key.
Key read_key(const std::string& path);
// The same of a key file's text; `path` is for messages.
Key parse_key(std::string_view text, const std::string& path);
// Throws SecurityError unless the open file is a regular one of this user that nobody else may read or write. `what`
// ("key file") is for messages.
void check_private_file(int descriptor, const std::string& path, const std::string& what);
// Made with mode 0600, never over an existing file. Throws Error.
void write_key(const Key& key, const std::string& path);

std::string to_hex(std::span<const std::byte> bytes);    // two digits a byte, lower case
bool is_hex(std::string_view text, std::size_t digits);  // of so many, lower case

using Digest = std::array<std::byte, 32>;
Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> text);
bool same_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b);
void random_bytes(std::span<std::byte> out);  // cryptographic. Throws SecurityError.

// Who a side is among those that hold its key: a key says that its holder is there, and not which of them. Without this
// a call could be returned to its own caller, who would take it for the peer's (RFC 9257, section 4.1).

using Party = std::array<std::byte, 16>;  // zero: not told

// A digest of `name`; where that is empty, of this machine since it was started (containers with a network of their own
// count as machines). Throws SecurityError where OpenSSL fails.
Party party_of(const std::string& name);

}  // namespace maki::wan
