// How much memory this process may still take.
#pragma once

#include <cstddef>
#include <string>

namespace maki {

// Bytes: the kernel's MemAvailable, or what the control groups of this process leave where that is less. 0 where
// neither says anything. `root` is put before /proc and /sys, for tests.
std::size_t host_memory_available(const std::string& root = "");

}  // namespace maki
