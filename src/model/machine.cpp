#include "src/model/machine.hpp"

#include <fmt/format.h>

#include "kernels/error.hpp"

namespace maki::model {

std::vector<Site> sites_of(const Machine& machine, int count) {
  const auto have = static_cast<int>(machine.sites.size());
  if (have == 0) throw Error(fmt::format("'{}' lists no sites", machine.name), "", "give a machine with [[site]]");
  if (have == 1) return std::vector<Site>(static_cast<std::size_t>(count), machine.sites.front());
  if (count > have) {
    throw Error(fmt::format("'{}' lists {} sites, not {}", machine.name, have, count), "",
                "ask for fewer, or give a machine of one site, which may be there any number of times");
  }
  return {machine.sites.begin(), machine.sites.begin() + count};
}

}  // namespace maki::model
