// Words of a peer, made safe to be shown: whatever goes into a message, an error or a log passes through here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace maki::wan {

// `text` with each byte of control characters (C0, C1, delete), of marks that hide or turn text around, and of what is no UTF-8
// as \xNN; all other characters as they are. At most `longest` bytes, then "...". Of its own result it changes nothing.
std::string printable(std::string_view text, std::size_t longest = 500);

}  // namespace maki::wan
