#include "host/fft/pencil_mesh.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "host/fft/particle_brick.hpp"
#include "kernels/error.hpp"
#include "tests/kernels/mesh/field_of.hpp"
#include "tests/kernels/particles/sets.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

using test::Field, test::field_of;
using Set = std::vector<SourceParticle>;

double rms(const std::vector<float>& values) {
  double sum = 0;
  for (float v : values) sum += static_cast<double>(v) * v;
  return std::sqrt(sum / static_cast<double>(std::max<std::size_t>(values.size(), 1)));
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

TEST(PencilMesh, ForcesAreThoseOfTheMeshOfOneRank) {
  for (Gradient gradient : {Gradient::kSpectral, Gradient::kFourPoint, Gradient::kAnalytic})
    for (Interlacing interlacing : {Interlacing::kNone, Interlacing::kAssignment, Interlacing::kFull})
      for (Assignment cloud : {Assignment::kCic, Assignment::kTsc, Assignment::kPcs}) {
        SCOPED_TRACE(::testing::Message()
                     << "cloud " << static_cast<int>(cloud) << ", gradient " << static_cast<int>(gradient)
                     << ", interlacing " << static_cast<int>(interlacing));
        const MeshOptions options{16, cloud, gradient, interlacing};
        const ForceLaw law = make_force_law(Split::kPolynomial, 5, 4.5 / 16, Softening::kPlummer, 1e-4);
        const Set set = testing::random_set(300, 3, 0.37f);
        PencilMesh pencils(Communicator::self(), options, law);
        ParticleMesh one(options, law);
        for (bool potential : {true, false}) {
          const Field a = field_of(pencils, set, potential, 2), b = field_of(one, set, potential);
          const double force = 3e-6 * (rms(b.x) + rms(b.y) + rms(b.z));
          EXPECT_LT(largest_difference(a.x, b.x), force);
          EXPECT_LT(largest_difference(a.y, b.y), force);
          EXPECT_LT(largest_difference(a.z, b.z), force);
          EXPECT_LE(largest_difference(a.potential, b.potential), 3e-6 * rms(b.potential));
        }
      }
}

// Modes stand in another order, and the sums over them at the heavy particle's place are the same.
TEST(PencilMesh, ALoneHeavyParticleFeelsWhatItFeelsOnTheMeshOfOneRank) {
  const double r_cut = 4.5 / 16;
  const ForceLaw law = make_force_law(Split::kPolynomial, 5, r_cut, Softening::kPlummer, 1e-4);
  Set set = testing::random_set(1500, 3, 0.37f);
  set[0].mass = 1e5f;
  for (Interlacing interlacing : {Interlacing::kNone, Interlacing::kAssignment, Interlacing::kFull}) {
    const MeshOptions options{16, Assignment::kPcs, Gradient::kAnalytic, interlacing};
    PencilMesh pencils(Communicator::self(), options, law);
    ParticleMesh one(options, law);
    const Field a = field_of(pencils, set, false), b = field_of(one, set, false);
    const double rounding = 3e-8 * set[0].mass / (r_cut * r_cut);
    EXPECT_NEAR(a.x[0], b.x[0], rounding);
    EXPECT_NEAR(a.y[0], b.y[0], rounding);
    EXPECT_NEAR(a.z[0], b.z[0], rounding);
  }
}

TEST(PencilMesh, RefusesWhatTheMeshOfOneRankRefuses) {
  const ForceLaw law = make_force_law(Split::kPolynomial, 5, 4.5 / 16, Softening::kPlummer, 1e-4);
  EXPECT_THROW(PencilMesh(Communicator::self(), {15}, law), Error);
  EXPECT_THROW(PencilMesh(Communicator::self(), {16}, ForceLaw{}), Error);
}

TEST(OccupiedRun, LeavesOutTheLongestGap) {
  EXPECT_EQ(occupied_run({0, 0, 0, 0}), (PencilRange{0, 0}));
  EXPECT_EQ(occupied_run({0, 1, 0, 0}), (PencilRange{1, 2}));
  EXPECT_EQ(occupied_run({1, 0, 0, 1}), (PencilRange{3, 5}));
  EXPECT_EQ(occupied_run({1, 0, 1, 0, 0, 0, 1}), (PencilRange{6, 10}));
  EXPECT_EQ(occupied_run({0, 1, 1, 0, 1, 0}), (PencilRange{1, 5}));
  EXPECT_EQ(occupied_run({1, 1, 1}).count(), 3);
}

using Counts = std::array<std::vector<std::uint64_t>, 2>;

// Two sites, each of which has what the other one gave.
struct Pair : OutsideMasses {
  Counts mine;
  Pair* other = nullptr;

  void start_sum(const MeshBox& box, const MassUnit&, int, const std::uint64_t* counts,
                 const std::uint64_t* shifted) override {
    mine[0].assign(counts, counts + box.size());
    if (shifted) mine[1].assign(shifted, shifted + box.size());
  }
  void finish_sum(const MeshBox& box, const MassUnit&, int, std::uint64_t* counts, std::uint64_t* shifted) override {
    for (std::size_t i = 0; i < box.size(); ++i) {
      counts[i] += other->mine[0][i];
      if (shifted) shifted[i] += other->mine[1][i];
    }
  }
};

// What a site gives and takes early or late is the mesh of all particles.
TEST(OutsideMasses, AddedBeforeTheTransformAreThoseOfOneSet) {
  const ForceLaw law{.split = Split::kPolynomial, .r_cut = 0.2f};
  const auto expect_one_set = [&](Gradient gradient, Interlacing interlacing, int mass_bits) {
    const MeshOptions options{32, Assignment::kPcs, gradient, interlacing, mass_bits};
    Set set = testing::clumped_set(500, 5, mass_bits == 0);
    std::ranges::sort(set, {}, &SourceParticle::x);
    const Set left(set.begin(), set.begin() + 200), right(set.begin() + 200, set.end());
    const Stream& stream = test::test_stream();
    const test::OnDevice all(set), left_source(left), right_source(right);
    PencilMesh one(Communicator::self(), options, law), a(Communicator::self(), options, law),
        b(Communicator::self(), options, law);
    const MassUnit unit =
        choose_mass_unit(stream, options.assignment, options.cells, all.data(), all.size(), mass_bits);
    EXPECT_EQ(unit.dropped_bits > 0, mass_bits > 0);
    Pair to_a, to_b;
    to_a.other = &to_b;
    to_b.other = &to_a;
    a.set_outside(&to_a);
    b.set_outside(&to_b);
    a.begin(stream, left_source.data(), left.size(), unit);
    b.begin(stream, right_source.data(), right.size(), unit);
    Field together = field_of(a, left, unit);
    together.append(field_of(b, right, unit, true, 2));
    EXPECT_EQ(together, field_of(one, set, unit));
  };
  for (Gradient gradient : {Gradient::kSpectral, Gradient::kAnalytic, Gradient::kFourPoint})
    for (Interlacing interlacing : {Interlacing::kNone, Interlacing::kAssignment, Interlacing::kFull})
      for (int mass_bits : {0, 9}) expect_one_set(gradient, interlacing, mass_bits);
}

}  // namespace
}  // namespace maki
