// List evaluation and direct sum on the device of the build, against the formulas in double.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/kernels/force/random_lists.hpp"
#include "tests/on_device.hpp"

namespace maki::force_test {

inline constexpr float kUntouched = -77.0f;
inline constexpr double kTolerance = 3e-6;  // relative to the sum of the sizes of a target's terms

struct Result {
  std::vector<float> ax, ay, az, p;
  bool operator==(const Result& o) const { return same(ax, o.ax) && same(ay, o.ay) && same(az, o.az) && same(p, o.p); }
  static bool same(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }
};

// Room for the result of n targets, all `before`.
struct Output {
  Output(const Stream& stream, std::size_t n, float before = kUntouched) : acceleration("test.acceleration") {
    const std::vector<float> untouched(n, before);
    for (auto* part : {&acceleration.x, &acceleration.y, &acceleration.z, &potential}) part->upload(stream, untouched);
  }
  ForceOutput view(bool with_potential) { return {acceleration.view(), with_potential ? potential.data() : nullptr}; }
  Result download(const Stream& stream) const {
    return {acceleration.x.download(stream), acceleration.y.download(stream), acceleration.z.download(stream),
            potential.download(stream)};
  }
  VectorArray acceleration;
  DeviceBuffer<float> potential{"test.potential"};
};

struct Uploaded : DeviceLists {
  Uploaded(const Stream& s, const RandomSet& set) : DeviceLists(s, set), stream(s) {}
  Result run(const ForceLaw& law, bool quadrupoles, bool potential,
             const std::vector<std::uint32_t>* chosen = nullptr) {
    Output out(stream, particles.size());
    DeviceBuffer<std::uint32_t> selected("test.selected");
    if (chosen) selected.upload(stream, *chosen);
    ListView view = all();
    if (chosen) {
      view.selected = selected.data();
      view.count = static_cast<std::uint32_t>(chosen->size());
    }
    evaluate_lists(stream, law, quadrupoles, sources(), view, out.view(potential));
    return out.download(stream);
  }
  const Stream& stream;
};

struct Errors {
  double a = 0, p = 0;            // largest, relative to the sum of the sizes of the terms
  double along = 0, squares = 0;  // sums of a.e and e.e, e the expected acceleration
};

// Holds every `stride`-th target of each group against the formulas in double. Nothing but targets may be written.
inline Errors errors_of(const Result& r, const ForceLaw& law, bool quadrupoles, bool potential, const RandomSet& set,
                        std::uint32_t stride = 1) {
  std::vector<bool> is_target(set.particles.size(), false);
  Errors worst;
  for (std::size_t g = 0; g < set.groups.size(); ++g) {
    const Group& group = set.groups[g];
    std::fill_n(is_target.begin() + group.first, group.count, true);
    for (std::uint32_t i = group.first; i < group.first + group.count; i += stride) {
      double size_a, size_p;
      const Effect e = expected(law, quadrupoles, set, g, i, size_a, size_p);
      if (size_a == 0) {
        EXPECT_TRUE(r.ax[i] == 0 && r.ay[i] == 0 && r.az[i] == 0);
      } else {
        worst.a = std::max(worst.a, std::hypot(r.ax[i] - e.ax, r.ay[i] - e.ay, r.az[i] - e.az) / size_a);
      }
      if (potential && size_p > 0) worst.p = std::max(worst.p, std::abs(r.p[i] - e.p) / size_p);
      EXPECT_TRUE(!potential || size_p != 0 || r.p[i] == 0);
      worst.along += r.ax[i] * e.ax + r.ay[i] * e.ay + r.az[i] * e.az;
      worst.squares += e.ax * e.ax + e.ay * e.ay + e.az * e.az;
    }
  }
  for (std::size_t i = 0; i < set.particles.size(); ++i) {
    EXPECT_TRUE(is_target[i] || r.ax[i] == kUntouched);
    EXPECT_TRUE((is_target[i] && potential) || r.p[i] == kUntouched);
  }
  return worst;
}

inline void check_lists(const ForceLaw& law, bool quadrupoles, bool potential, const RandomSet& set,
                        std::uint32_t stride = 1) {
  const Result found = Uploaded(test::test_stream(), set).run(law, quadrupoles, potential);
  const Errors worst = errors_of(found, law, quadrupoles, potential, set, stride);
  EXPECT_LT(std::max(worst.a, worst.p), kTolerance)
      << name_of(law) << ", quadrupoles " << quadrupoles << ", potential " << potential;
}

// Of targets [first, first + count), by all particles.
inline Result run_direct(const ForceLaw& law, const std::vector<SourceParticle>& set, std::uint32_t first,
                         std::uint32_t count, bool potential = true) {
  const Stream& stream = test::test_stream();
  test::OnDevice particles(set);
  Output out(stream, count);
  direct_sum(stream, law, {particles.data(), static_cast<std::uint32_t>(set.size()), first, count},
             out.view(potential));
  return out.download(stream);
}

// Direct sum over n particles, of a box of `reach` / 10, for targets [first, first + count).
struct DirectCase {
  std::uint32_t n, first, count;
  bool potential;
  double reach = 0.1, tolerance = kTolerance;
};
inline void check_direct(const ForceLaw& law, const DirectCase& c) {
  const auto& [n, first, count, potential, reach, tolerance] = c;
  const RandomSet set = random_lists({n}, 0, 0, reach, 1.0, n);
  const Result r = run_direct(law, set.particles, first, count, potential);
  RandomSet list = set;  // the same as a list of one leaf
  list.ranges[0] = {0, 0, 1};
  list.words = {0};
  for (std::uint32_t i = 0; i < count; i += 1 + count / 40) {
    double size_a, size_p;
    const Effect e = expected(law, false, list, 0, first + i, size_a, size_p);
    size_a += 1e-30, size_p += 1e-30;
    EXPECT_LT(std::hypot(r.ax[i] - e.ax, r.ay[i] - e.ay, r.az[i] - e.az) / size_a, tolerance) << name_of(law);
    EXPECT_TRUE(!potential || std::abs(r.p[i] - e.p) / size_p < tolerance) << name_of(law);
    EXPECT_TRUE(potential || r.p[i] == kUntouched);
  }
}

}  // namespace maki::force_test
