// Numbers of bytes for people.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace maki::wan {

inline std::string amount(double bytes) {
  if (bytes < 1e3) return fmt::format("{:.0f} B", bytes);
  if (bytes < 1e6) return fmt::format("{:.1f} kB", bytes / 1e3);
  if (bytes < 1e9) return fmt::format("{:.1f} MB", bytes / 1e6);
  return fmt::format("{:.2f} GB", bytes / 1e9);
}
inline std::string amount(std::uint64_t bytes) { return amount(static_cast<double>(bytes)); }

}  // namespace maki::wan
