// Mesh and tree side by side give what they give one after the other.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/error.hpp"
#include "src/gravity/gravity.hpp"
#include "tests/kernels/particles/at_rest.hpp"
#include "tests/kernels/tree/tree_set.hpp"

namespace maki {
namespace {

GravityOptions tree_and_mesh() {
  GravityOptions options;
  options.mesh.cells = 32;
  options.law = make_force_law(Split::kPolynomial, 4, 3.0f / 32, Softening::kPlummer, 1e-4);
  return options;
}

struct Results {
  std::vector<std::vector<float>> values;  // two accelerations of three axes, two potentials

  Results(const Stream& stream, const Gravity& g) {
    for (const VectorArray* a : {&g.short_acceleration(), &g.long_acceleration()})
      for (const auto* axis : {&a->x, &a->y, &a->z}) values.push_back(axis->download(stream));
    for (const auto* potential : {&g.short_potential(), &g.long_potential()})
      values.push_back(potential->download(stream));
  }
};

TEST(GravityStreams, BothRangesAtOnceAreTheSameToTheBit) {
  const Stream stream;
  const auto set = testing::clustered_set(6000, 5);
  PhaseTimers timers;
  Particles one, other;
  testing::upload_at_rest(stream, set, one);
  testing::upload_at_rest(stream, set, other);
  Gravity together(tree_and_mesh(), timers), apart(tree_and_mesh(), timers);
  for (int step = 0; step < 4; ++step) {  // new lists, kept lists, new lists by request
    if (step == 2) {
      together.request_rebuild();
      apart.request_rebuild();
    }
    together.evaluate(stream, one, Ranges::kBoth, true);
    apart.evaluate(stream, other, Ranges::kShort, true);
    apart.evaluate(stream, other, Ranges::kLong, true);
    const Results a(stream, together), b(stream, apart);
    for (std::size_t k = 0; k < a.values.size(); ++k) {
      ASSERT_EQ(a.values[k].size(), set.size());
      EXPECT_EQ(std::memcmp(a.values[k].data(), b.values[k].data(), set.size() * sizeof(float)), 0)
          << "array " << k << ", step " << step;
    }
    EXPECT_EQ(together.counts().rebuilt, apart.counts().rebuilt);
    EXPECT_EQ(together.counts().interactions, apart.counts().interactions);
  }
}

TEST(GravityStreams, WithoutAMeshBothRangesAreTheTreeAlone) {
  const Stream stream;
  GravityOptions options;
  options.periodic = false;
  options.law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 1e-3);
  PhaseTimers timers;
  Particles particles;
  testing::upload_at_rest(stream, testing::plummer_set(500, 5), particles);
  Gravity gravity(options, timers);
  gravity.evaluate(stream, particles, Ranges::kBoth, false);
  EXPECT_EQ(gravity.short_acceleration().size(), 500u);
  for (const float a : gravity.long_acceleration().x.download(stream)) EXPECT_EQ(a, 0);
}

// A mesh that fails beside the tree is an error of the step, and the next step is sound.
TEST(GravityStreams, AFailureOfTheMeshIsNotLost) {
  const Stream stream;
  PhaseTimers timers;
  Particles particles;
  auto set = testing::clustered_set(3000, 6);
  set[17].mass = -1;
  testing::upload_at_rest(stream, set, particles);
  Gravity gravity(tree_and_mesh(), timers);
  EXPECT_THROW(gravity.evaluate(stream, particles, Ranges::kBoth, false), Error);
  set[17].mass = set[16].mass;
  testing::upload_at_rest(stream, set, particles);
  gravity.request_rebuild();
  gravity.evaluate(stream, particles, Ranges::kBoth, false);
  EXPECT_EQ(gravity.long_acceleration().size(), set.size());
}

}  // namespace
}  // namespace maki
