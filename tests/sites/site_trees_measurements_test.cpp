// What goes from site to site in a step, beside SUSHI's eq. 12.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tests/host/let/expected_sizes.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/sites/tree_sites.hpp"

namespace maki::sites {
namespace {

using testing::TreeSites;

struct Bytes {
  std::uint64_t rebuild = 0, reuse = 0;  // of the site that sends most
};

std::uint64_t most(const TreeSites& sites) {
  std::uint64_t bytes = 0;
  for (const testing::TreeSite& site : sites.all) bytes = std::max(bytes, site.trees->counts().bytes_sent);
  return bytes;
}

Bytes measure(const std::vector<SourceParticle>& set, const Slabs& slabs, const WalkOptions& walk, float drift,
              bool compress) {
  TreeSites sites(set, slabs, walk, {.compress = compress});
  Bytes bytes;
  sites.rebuild(drift);
  bytes.rebuild = most(sites);
  sites.update();
  bytes.reuse = most(sites);
  return bytes;
}

void report(const char* name, const std::vector<SourceParticle>& set, float theta, double reach) {
  const double n = static_cast<double>(set.size()), mean = 1 / std::cbrt(n);
  WalkOptions walk;
  walk.theta = theta;
  walk.r_cut = static_cast<float>(reach * mean);
  const double estimate = sushi_site_let_bytes(n, theta);
  for (const int count : {2, 3}) {
    const Slabs slabs(count, 0);
    const auto drift = static_cast<float>(0.1 * mean);
    const Bytes plain = measure(set, slabs, walk, drift, false), packed = measure(set, slabs, walk, drift, true);
    std::printf(
        "%-8s %.0f^3, theta %.1f, r_cut %.0f mean distances, %d sites: eq. 12 %8.0f bytes; rebuild %8lu, reuse "
        "%8lu; compressed %8lu, %8lu (%.2f and %.2f of eq. 12)\n",
        name, std::cbrt(n), theta, reach, count, estimate, plain.rebuild, plain.reuse, packed.rebuild, packed.reuse,
        static_cast<double>(packed.rebuild) / estimate, static_cast<double>(packed.reuse) / estimate);
    EXPECT_LT(static_cast<double>(packed.reuse), 1.5 * estimate);
    EXPECT_LT(packed.rebuild, plain.reuse);
  }
}

std::vector<SourceParticle> lattice(int side) {
  std::vector<SourceParticle> set;
  const double n = side;
  for (const SourceParticle& p : maki::testing::uniform_set(static_cast<std::size_t>(side * side * side), 61)) {
    const auto i = static_cast<int>(set.size());
    const auto at = [&](int k, std::uint32_t noise) {
      return maki::testing::to_fixed((k + 0.5 + 0.3 * (noise * 0x1p-32 - 0.5)) / n);
    };
    set.push_back(
        {at(i / side / side, p.x), at(i / side % side, p.y), at(i % side, p.z), static_cast<float>(1 / (n * n * n))});
  }
  return set;
}

TEST(FullSiteTrees, BytesBesideSushi) {
  for (const double reach : {2.0, 3.0, 6.0}) {
    report("lattice", lattice(64), 0.4f, reach);
    auto clumps = maki::testing::clustered_set(64 * 64 * 64, 62);
    for (SourceParticle& p : clumps) p.x *= 2, p.y *= 2, p.z *= 2;
    report("clumps", clumps, 0.7f, reach);
  }
}

}  // namespace
}  // namespace maki::sites
