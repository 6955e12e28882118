// List evaluation by every instruction set against the formulas in double.
#include "kernels/force/evaluate_cpu.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/commands.hpp"
#include "tests/kernels/force/lists_on_device.hpp"

namespace maki::force_test {

namespace {

Errors errors_of(const ForceLaw& law, bool quadrupoles, bool potential, const RandomSet& set) {
  const ForceKernels& kernels = force_kernels();
  const std::vector<float> untouched(set.particles.size(), kUntouched);
  Result r{untouched, untouched, untouched, untouched};
  const GroupParameters k = kernels.centred(make_pair_parameters(law));
  for (std::size_t g = 0; g < set.groups.size(); ++g) {
    const ListRange& range = set.ranges[g];
    kernels.evaluate_group(k, {{set.particles.data(), set.cells.data(), set.cell_first.data(), set.cell_count.data(),
                                set.particles.data()},
                               set.words.data() + range.begin,
                               range,
                               set.groups[g],
                               quadrupoles,
                               r.ax.data(),
                               r.ay.data(),
                               r.az.data(),
                               potential ? r.p.data() : nullptr,
                               false});
  }
  return errors_of(r, law, quadrupoles, potential, set);
}

class EvaluateGroup : public ::testing::TestWithParam<InstructionSet> {
 protected:
  void SetUp() override {
    if (!use_instruction_set(GetParam())) GTEST_SKIP() << "this processor has no " << name_of(GetParam());
  }
  void TearDown() override { use_instruction_set(best_instruction_set()); }
  static void check(const ForceLaw& law, bool quadrupoles, bool potential, const RandomSet& set,
                    double tolerance = kTolerance) {
    const Errors e = errors_of(law, quadrupoles, potential, set);
    EXPECT_LT(std::max(e.a, e.p), tolerance) << name_of(law) << " " << quadrupoles << potential;
  }
};

TEST_P(EvaluateGroup, EveryGroupSize) {
  std::vector<unsigned> sizes{256, 257, 600};
  for (unsigned n = 1; n <= 130; ++n) sizes.push_back(n);
  check(make_force_law(Split::kPolynomial, 5, 0.012, Softening::kPlummer, 2e-4, 3.5), true, true,
        random_lists(sizes, 5, 7, 0.01, 1.0, 1));
}

TEST_P(EvaluateGroup, EveryLaw) {
  const RandomSet set = random_lists({1, 37, 64}, 90, 200, 0.01, 1.0, 2);
  for (ForceLaw law : laws_for(0.012, 2e-4))
    for (const bool refine : {true, false}) {
      law.refine_root = refine;
      for (const bool quadrupoles : {true, false})
        for (const bool potential : {true, false}) check(law, quadrupoles, potential, set, refine ? kTolerance : 2e-4);
    }
}

// Coarse roots make forces neither larger nor smaller on average (2.7e-5 larger without).
TEST_P(EvaluateGroup, CoarseRootsAreCentred) {
  for (const auto& [leaves, cells] : {std::pair{900u, 0u}, {0u, 900u}}) {
    const RandomSet set = random_lists({600, 600}, leaves, cells, 0.01, 1.0, 2);
    for (ForceLaw law : laws_for(0.02, 2e-4)) {
      law.refine_root = false;
      const Errors e = errors_of(law, cells > 0, false, set);
      EXPECT_NEAR(e.along / e.squares, 1, 5e-6) << name_of(GetParam()) << " " << name_of(law) << " " << cells;
    }
  }
}

TEST_P(EvaluateGroup, EmptyAndOneSidedLists) {
  const ForceLaw law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 2e-4);
  for (const auto& [leaves, cells] : {std::pair{0u, 0u}, {0u, 9u}, {3u, 0u}, {0u, 700u}, {400u, 0u}}) {
    SCOPED_TRACE(::testing::Message() << leaves << " leaves, " << cells << " cells");
    const RandomSet set = random_lists({5, 64}, leaves, cells, 0.01, 1.0, 3);
    for (const bool quadrupoles : {true, false}) check(law, quadrupoles, true, set);
  }
}

// Softening down to 256 units of the last bit, tiny and huge masses, tight and wide groups.
TEST_P(EvaluateGroup, ExtremeScales) {
  for (const double mass : {1e-10, 1e5})
    for (const double reach : {2e-6, 0.2}) {
      SCOPED_TRACE(::testing::Message() << "mass " << mass << ", reach " << reach);
      const RandomSet set = random_lists({1, 16, 50}, 20, 20, reach, mass, 4);
      for (const ForceLaw& law : laws_for(std::min(0.24, 1.1 * reach), 6e-8)) check(law, true, true, set, 2e-5);
    }
}

TEST_P(EvaluateGroup, ParticlesAtOnePoint) {
  RandomSet set = random_lists({40}, 3, 0, 0.01, 1.0, 5);
  for (std::uint32_t i = 0; i < 40; ++i) set.particles[i] = {1u << 31, 1u << 30, 5, 1.0f};
  for (const ForceLaw& law : laws_for(0.012, 2e-4)) check(law, true, true, set);
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, EvaluateGroup,
                         ::testing::Values(InstructionSet::kAvx512, InstructionSet::kAvx2, InstructionSet::kScalar),
                         [](const auto& set) { return std::string(name_of(set.param)); });

}  // namespace

}  // namespace maki::force_test

// The linker keeps one copy of a function that several units define. A copy compiled for AVX-512, or with -ffast-math,
// must not become everyone's: units for one instruction set may define no such (weak) functions at all.

namespace {

// Also that its source, NAME_isa.cpp, is still there: a build keeps old objects.
bool is_instruction_set_unit(const std::filesystem::path& object, const std::filesystem::path& sources) {
  for (const std::string set : {"_avx512.cpp", "_avx2.cpp", "_scalar.cpp"}) {
    const std::string name = object.filename().string();
    if (!name.ends_with(set + ".o")) continue;
    const std::string stem = name.substr(0, name.size() - set.size() - 2);
    return std::filesystem::exists(sources / (stem + "_isa.cpp"));
  }
  return false;
}

TEST(Symbols, InstructionSetUnitsShareNoCode) {
#if !defined(MAKI_OBJECT_DIR)
  GTEST_SKIP() << "the build does not say where its object files are";
#else
  namespace fs = std::filesystem;
  const fs::path kernels = fs::path(MAKI_OBJECT_DIR) / "kernels";
  if (!fs::exists(kernels)) GTEST_SKIP() << "no object files in " << kernels;
  if (maki::test::call_shell("nm --version").code != 0) GTEST_SKIP() << "nm is not installed";
  int units = 0;
  for (const fs::directory_entry& file : fs::recursive_directory_iterator(kernels)) {
    const fs::path sources = fs::path(MAKI_SOURCE_DIR) / "kernels" / fs::relative(file.path().parent_path(), kernels);
    if (!is_instruction_set_unit(file.path(), sources)) continue;
    ++units;
    const std::string nm = "nm -C --defined-only '" + file.path().string() + "'";
    EXPECT_EQ(maki::test::call_shell(nm + " | grep ' [WVu] '").output, "");
  }
  EXPECT_GE(units, 8) << "three of kernels/force, three of kernels/mesh, two of kernels/tree";
#endif
}

}  // namespace
