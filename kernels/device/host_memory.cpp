#include "kernels/device/device.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

namespace maki {
namespace {

namespace fs = std::filesystem;

// The number after `name` in a file of "name value" lines; with an empty name, the only number of a file.
std::optional<std::size_t> number_in(const fs::path& path, const std::string& name = "") {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    if (!name.empty() && (!(words >> word) || word != name)) continue;
    std::size_t value = 0;
    if (words >> value) return value;
    if (name.empty()) return std::nullopt;  // "max"
  }
  return std::nullopt;
}

// Memory that a control group leaves. Pages of files count as used, but are reclaimable.
std::optional<std::size_t> left_in_group(const fs::path& group, const char* limit, const char* usage,
                                         const char* file_pages) {
  const auto most = number_in(group / limit), used = number_in(group / usage);
  if (!most || !used || *most > std::numeric_limits<std::size_t>::max() / 4) return std::nullopt;
  const std::size_t held = *used - std::min(*used, number_in(group / "memory.stat", file_pages).value_or(0));
  return *most - std::min(*most, held);
}

// The least over this process's group and all above it.
std::size_t left_in_groups(const fs::path& mount, const std::string& path, bool second_version) {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  fs::path group = mount / fs::path(path).relative_path();
  for (;; group = group.parent_path()) {
    const auto left =
        second_version ? left_in_group(group, "memory.max", "memory.current", "inactive_file")
                       : left_in_group(group, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file");
    if (left) least = std::min(least, *left);
    if (group == mount || !group.has_relative_path()) return least;
  }
}

}  // namespace

std::size_t host_memory_available(const std::string& root) {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  if (const auto kib = number_in(root + "/proc/meminfo", "MemAvailable:")) least = *kib * 1024;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/path", or "4:memory:/path" in the first version
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) least = std::min(least, left_in_groups(root + "/sys/fs/cgroup", path, true));
    if (controllers == "memory") least = std::min(least, left_in_groups(root + "/sys/fs/cgroup/memory", path, false));
  }
  return least == std::numeric_limits<std::size_t>::max() ? 0 : least;
}

}  // namespace maki
