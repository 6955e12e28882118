#include "host/fft/pencil_mesh.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "host/fft/mass_unit.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

using Counts = std::array<std::vector<std::uint64_t>, 2>;

// Two sites, each of which has what the other one gave.
struct Pair : OutsideMasses {
  Counts mine;
  Pair* other = nullptr;

  void start_sum(const MeshBox& box, const MassUnit&, const std::uint64_t* counts,
                 const std::uint64_t* shifted) override {
    mine[0].assign(counts, counts + box.size());
    if (shifted) mine[1].assign(shifted, shifted + box.size());
  }
  void finish_sum(const MeshBox& box, const MassUnit&, std::uint64_t* counts, std::uint64_t* shifted) override {
    for (std::size_t i = 0; i < box.size(); ++i) {
      counts[i] += other->mine[0][i];
      if (shifted) shifted[i] += other->mine[1][i];
    }
  }
};

struct Set {
  DeviceBuffer<SourceParticle> source{"test.source"};
  VectorArray acceleration{"test.acceleration"};
  explicit Set(const std::vector<SourceParticle>& particles) {
    source.upload(test::test_stream(), particles);
    acceleration.resize(particles.size());
  }
  std::vector<float> x() const {
    std::vector<float> values(source.size());
    copy_to_host(test::test_stream(), values.data(), acceleration.view().x, values.size() * sizeof(float));
    return values;
  }
};

std::vector<SourceParticle> particles(std::size_t n, bool equal) {
  std::mt19937 random(5);
  std::vector<SourceParticle> set(n);
  const auto any = [&] { return static_cast<std::uint32_t>(random()); };
  for (SourceParticle& p : set)
    p = {any(), any(), any(), equal ? 1.0f : 1.0f + 0.001f * static_cast<float>(any() % 100)};
  std::sort(set.begin(), set.end(), [](const SourceParticle& a, const SourceParticle& b) { return a.x < b.x; });
  return set;
}

// What a site gives and takes early or late is the mesh of all particles.
TEST(OutsideMasses, AddedBeforeTheTransformAreThoseOfOneSet) {
  const ForceLaw law = [] {
    ForceLaw l;
    l.split = Split::kPolynomial;
    l.r_cut = 0.2f;
    return l;
  }();
  const auto everything = [](auto&& test) {
    for (Gradient gradient : {Gradient::kSpectral, Gradient::kAnalytic, Gradient::kFourPoint})
      for (Interlacing interlacing : {Interlacing::kNone, Interlacing::kAssignment, Interlacing::kFull})
        for (int mass_bits : {0, 9}) test(gradient, interlacing, mass_bits);
  };
  everything([&](Gradient gradient, Interlacing interlacing, int mass_bits) {
    const MeshOptions options{32, Assignment::kPcs, gradient, interlacing, mass_bits};
    const std::vector<SourceParticle> set = particles(500, mass_bits == 0);
    const Stream& stream = test::test_stream();
    Set all(set), left({set.begin(), set.begin() + 200}), right({set.begin() + 200, set.end()});
    PencilMesh one(Communicator::self(), options, law), a(Communicator::self(), options, law),
        b(Communicator::self(), options, law);
    const MassUnit unit = choose_mass_unit(stream, one.options().assignment, one.options().cells, all.source.data(),
                                           all.source.size(), mass_bits);
    EXPECT_EQ(unit.dropped_bits > 0, mass_bits > 0);
    one.long_range(stream, all.source.data(), all.source.size(), unit, all.acceleration.view(), nullptr);
    Pair to_a, to_b;
    to_a.other = &to_b;
    to_b.other = &to_a;
    a.set_outside(&to_a);
    b.set_outside(&to_b);
    a.begin(stream, left.source.data(), left.source.size(), unit);
    b.begin(stream, right.source.data(), right.source.size(), unit);
    a.long_range(stream, left.source.data(), left.source.size(), unit, left.acceleration.view(), nullptr);
    b.long_range(stream, right.source.data(), right.source.size(), unit, right.acceleration.view(), nullptr);
    b.long_range(stream, right.source.data(), right.source.size(), unit, right.acceleration.view(), nullptr);
    std::vector<float> together = left.x();
    for (float x : right.x()) together.push_back(x);
    EXPECT_EQ(together, all.x());
  });
}

}  // namespace
}  // namespace maki
