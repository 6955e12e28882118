#include "src/simulation/memory_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace maki {

std::vector<PoolUse> families(const std::vector<PoolUse>& arrays) {
  std::map<std::string, std::size_t> sums;
  for (const PoolUse& array : arrays) sums[array.name.substr(0, array.name.find('.'))] += array.bytes;
  std::vector<PoolUse> sorted;
  for (const auto& [name, bytes] : sums) sorted.push_back({name, bytes});
  std::stable_sort(sorted.begin(), sorted.end(), [](const PoolUse& a, const PoolUse& b) { return a.bytes > b.bytes; });
  return sorted;
}

std::string memory_table(const std::vector<PoolUse>& arrays, std::size_t particles) {
  std::size_t width = 24, sum = 0;
  for (const PoolUse& array : arrays) width = std::max(width, array.name.size() + 2);
  const auto line = [&](const std::string& name, std::size_t bytes) {
    return fmt::format("{:<{}}  {:>10.2f} MB  {:>7.1f}\n", name, width, 1e-6 * static_cast<double>(bytes),
                       static_cast<double>(bytes) / static_cast<double>(std::max<std::size_t>(particles, 1)));
  };
  std::string text = fmt::format("{:<{}}  {:>13}  {:>7}\n", "device memory at the peak", width, "", "B/part.");
  for (const PoolUse& array : arrays) {
    text += line(array.name, array.bytes);
    sum += array.bytes;
  }
  return text + line("total", sum);
}

}  // namespace maki
