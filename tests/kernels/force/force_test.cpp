// evaluate_lists and direct_sum as the rest of the program calls them, on the device of this build.
#include "kernels/force/force.hpp"

#include <gtest/gtest.h>

#include "tests/kernels/force/random_lists.hpp"
#include "tests/test_stream.hpp"

namespace maki::force_test {
namespace {

struct Forces {
  std::vector<float> ax, ay, az, p;
};

struct ForceBuffers {
  explicit ForceBuffers(std::size_t n) : acceleration("test.acceleration"), potential("test.potential", n) {
    acceleration.resize(n);
  }
  ForceOutput view(bool with_potential) { return {acceleration.view(), with_potential ? potential.data() : nullptr}; }
  Forces download(const Stream& stream) const {
    return {acceleration.x.download(stream), acceleration.y.download(stream), acceleration.z.download(stream),
            potential.download(stream)};
  }
  VectorArray acceleration;
  DeviceBuffer<float> potential;
};

template <class T>
DeviceBuffer<T> on_device(const Stream& stream, const std::vector<T>& host) {
  DeviceBuffer<T> buffer("test.input");
  buffer.upload(stream, host);
  return buffer;
}

Forces run_lists(const ForceLaw& law, bool quadrupoles, bool potential, const RandomSet& set,
                 const std::vector<std::uint32_t>& selected) {
  const Stream& stream = test::test_stream();
  const auto particles = on_device(stream, set.particles);
  const auto cells = on_device(stream, set.cells);
  const auto cell_first = on_device(stream, set.cell_first), cell_count = on_device(stream, set.cell_count);
  const auto groups = on_device(stream, set.groups);
  const auto ranges = on_device(stream, set.ranges);
  const auto words = on_device(stream, set.words), chosen = on_device(stream, selected);
  ForceBuffers out(set.particles.size());
  out.acceleration.fill_zero(stream);
  out.potential.fill_zero(stream);
  const std::size_t count = selected.empty() ? set.groups.size() : selected.size();
  evaluate_lists(stream, law, quadrupoles, {particles.data(), cells.data(), cell_first.data(), cell_count.data()},
                 {groups.data(), ranges.data(), words.data(), selected.empty() ? nullptr : chosen.data(),
                  static_cast<std::uint32_t>(count)},
                 out.view(potential));
  stream.synchronize();
  return out.download(stream);
}

Forces run_direct(const ForceLaw& law, const std::vector<SourceParticle>& set, std::uint32_t first,
                  std::uint32_t count) {
  const Stream& stream = test::test_stream();
  const auto particles = on_device(stream, set);
  ForceBuffers out(count);
  direct_sum(stream, law, {particles.data(), static_cast<std::uint32_t>(set.size()), first, count}, out.view(true));
  stream.synchronize();
  return out.download(stream);
}

TEST(EvaluateLists, AgreesWithTheFormulas) {
  const RandomSet set = random_lists({1, 3, 31, 32, 33, 64, 65, 100, 128, 129, 300}, 100, 200, 0.01, 1.0, 7);
  for (const ForceLaw& law : laws_for(0.012, 2e-4)) {
    for (const bool quadrupoles : {true, false}) {
      const Forces f = run_lists(law, quadrupoles, true, set, {});
      const Forces without = run_lists(law, quadrupoles, false, set, {});
      double worst_a = 0, worst_p = 0;
      for (std::size_t g = 0; g < set.groups.size(); ++g) {
        const std::uint32_t first = set.groups[g].first;
        for (std::uint32_t i = first; i < first + set.groups[g].count; i += 7) {
          double size_a, size_p;
          const Effect e = expected(law, quadrupoles, set, g, i, size_a, size_p);
          worst_a = std::max(worst_a, std::hypot(f.ax[i] - e.ax, f.ay[i] - e.ay, f.az[i] - e.az) / size_a);
          worst_a = std::max(worst_a, std::hypot(without.ax[i] - e.ax, without.ay[i] - e.ay) / size_a);
          worst_p = std::max(worst_p, std::abs(f.p[i] - e.p) / size_p);
          EXPECT_EQ(without.p[i], 0.0f);
        }
      }
      EXPECT_LT(worst_a, 3e-6) << name_of(law) << " " << quadrupoles;
      EXPECT_LT(worst_p, 3e-6) << name_of(law) << " " << quadrupoles;
    }
  }
}

TEST(EvaluateLists, OnlySelectedGroups) {
  const RandomSet set = random_lists({10, 20, 30, 40}, 5, 5, 0.01, 1.0, 8);
  const ForceLaw law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 2e-4);
  const Forces all = run_lists(law, true, true, set, {}), some = run_lists(law, true, true, set, {3, 1});
  for (std::size_t g = 0; g < set.groups.size(); ++g) {
    const std::uint32_t first = set.groups[g].first;
    for (std::uint32_t i = first; i < first + set.groups[g].count; ++i) {
      EXPECT_EQ(some.ax[i], g % 2 ? all.ax[i] : 0.0f);
      EXPECT_EQ(some.p[i], g % 2 ? all.p[i] : 0.0f);
    }
  }
}

std::vector<SourceParticle> random_particles(std::size_t n, unsigned seed, double width) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0.5 - 0.5 * width, 0.5 + 0.5 * width);
  std::vector<SourceParticle> set(n);
  for (auto& s : set) {
    s.x = static_cast<std::uint32_t>(uniform(random) * kSideToUnits);
    s.y = static_cast<std::uint32_t>(uniform(random) * kSideToUnits);
    s.z = static_cast<std::uint32_t>(uniform(random) * kSideToUnits);
    s.mass = static_cast<float>(0.5 + uniform(random));
  }
  return set;
}

TEST(DirectSum, AgreesWithTheFormulas) {
  const std::vector<SourceParticle> set = random_particles(700, 9, 0.49);
  for (const ForceLaw& law : laws_for(0.21, 2e-3)) {
    const PairParameters k = make_pair_parameters(law);
    const std::uint32_t first = 5, count = 301;
    const Forces f = run_direct(law, set, first, count);
    for (std::uint32_t i = 0; i < count; i += 3) {
      const SourceParticle& t = set[first + i];
      Effect e;
      double size = 0;
      for (const SourceParticle& s : set) {
        const Effect before = e;
        add_point_in_double(k, signed_difference(s.x, t.x) / kSideToUnits / k.unit,
                            signed_difference(s.y, t.y) / kSideToUnits / k.unit,
                            signed_difference(s.z, t.z) / kSideToUnits / k.unit, s.mass, e);
        size += std::hypot(e.ax - before.ax, e.ay - before.ay, e.az - before.az);
      }
      const double a = 1 / (double(k.unit) * k.unit);
      EXPECT_LT(std::hypot(f.ax[i] - e.ax * a, f.ay[i] - e.ay * a, f.az[i] - e.az * a) / (size * a), 2e-6)
          << name_of(law);
      EXPECT_NEAR(f.p[i], -e.p / k.unit, 2e-6 * (std::abs(e.p) + 700) / k.unit) << name_of(law);
    }
  }
}

// Pairs' forces are equal and opposite, also for close pairs far from the others.
TEST(DirectSum, ConservesMomentum) {
  for (const std::size_t n : {2, 3, 64, 1000}) {
    std::vector<SourceParticle> set = random_particles(n, 10, 0.5);
    set[1] = set[0];
    set[1].x += 300;
    const ForceLaw law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 256.0 / kSideToUnits);
    const Forces f = run_direct(law, set, 0, static_cast<std::uint32_t>(n));
    double sum[3] = {}, size = 0;
    for (std::size_t i = 0; i < n; ++i) {
      sum[0] += double(set[i].mass) * f.ax[i];
      sum[1] += double(set[i].mass) * f.ay[i];
      sum[2] += double(set[i].mass) * f.az[i];
      size += set[i].mass * std::hypot(f.ax[i], f.ay[i], f.az[i]);
    }
    for (const double s : sum) EXPECT_LT(std::abs(s) / size, 2e-7) << n;
  }
}

TEST(DirectSum, ResolvesTheLastBits) {
  const ForceLaw law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 256.0 / kSideToUnits);
  const std::vector<SourceParticle> set = {{0x60000000u, 0x60000000u, 0x60000000u, 1.0f},
                                           {0x60000003u, 0x60000000u, 0x60000000u, 1.0f},
                                           {0x98765432u, 0x81234567u, 0x7abcdef0u, 1e-6f}};
  const Forces f = run_direct(law, set, 0, 2);
  const double r = 3 / kSideToUnits;
  const double a = force_factor(law, r * r) * r;
  EXPECT_NEAR(f.ax[0] / a, 1, 1e-6);
  EXPECT_NEAR(f.ax[1] / a, -1, 1e-6);
}

TEST(DirectSum, NoTargetsAndOneParticle) {
  const ForceLaw law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 1e-3);
  EXPECT_EQ(run_direct(law, random_particles(5, 11, 0.5), 2, 0).ax.size(), 0u);
  const Forces f = run_direct(law, random_particles(1, 12, 0.5), 0, 1);
  EXPECT_EQ(f.ax[0], 0.0f);
  EXPECT_EQ(f.p[0], 0.0f);
}

}  // namespace
}  // namespace maki::force_test
