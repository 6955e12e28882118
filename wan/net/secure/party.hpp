// Who a side is among those that hold its key: a key says that its holder is there, and not which of them. Without this a call
// could be returned to its own caller, who would take it for the peer's (RFC 9257, section 4.1).
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace maki::wan {

using Party = std::array<std::byte, 16>;  // zero: not told

// A digest of `name`; where that is empty, of this machine since it was started (containers with a network of their own count
// as machines). Throws SecurityError where OpenSSL fails.
Party party_of(const std::string& name);

}  // namespace maki::wan
