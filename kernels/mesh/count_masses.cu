#include "kernels/mesh/count_masses.hpp"

namespace maki {

CloudReach cloud_reach(Assignment cloud, bool interlaced) {
  if (cloud == Assignment::kCic) return {0, interlaced ? 2 : 1};
  if (cloud == Assignment::kTsc) return {1, 2};
  return {1, interlaced ? 3 : 2};
}

}  // namespace maki
