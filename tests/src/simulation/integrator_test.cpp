#include "src/simulation/integrator.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "kernels/error.hpp"
#include "kernels/measure/reductions.hpp"
#include "tests/messages.hpp"
#include "tests/src/simulation/fake_forces.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

// Of one particle at rest in the middle, until others are placed.
struct SmallRun {
  explicit SmallRun(Timeline t, const StepOptions& o, double side = 1) : timeline(std::move(t)), options(o) {
    frame.side = side;
    place({{0, 0, 0}}, {{0, 0, 0}}, {1});
  }
  void place(const std::vector<std::array<double, 3>>& x, const std::vector<std::array<float, 3>>& p,
             const std::vector<float>& mass) {
    std::vector<std::array<double, 3>> fractions = x;
    for (auto& v : fractions)
      for (double& component : v) component += 0.5;
    upload_particles(stream, particles, fractions, p, mass, std::vector<std::uint64_t>(x.size(), 0));
  }
  void forces(FakeForces::Law near, FakeForces::Law far = nullptr) {
    field.emplace(stream, particles, std::move(near), std::move(far));
    agreement.emplace(sites);
    integrator.emplace(RunContext{stream, timers, *agreement}, particles, *field, timeline, options, frame);
  }
  void begin(double t, FakeForces::Law near, FakeForces::Law far = nullptr) {
    forces(std::move(near), std::move(far));
    integrator->start(t, false);
  }
  void advance_to(double target) {
    while (integrator->time() < target) reports.push_back(integrator->advance(target, Potentials::kNever));
    integrator->synchronise();
  }
  HostParticles state() const { return download_particles(stream, particles); }

  const Stream& stream = test::test_stream();
  Particles particles;
  Timeline timeline;
  StepOptions options;
  Frame frame;
  PhaseTimers timers;
  std::optional<FakeForces> field;
  sites::Sites sites{Communicator::self()};
  std::optional<SiteAgreement> agreement;
  std::optional<Integrator> integrator;
  std::vector<StepReport> reports;
};

StepOptions fixed(double step) { return {.fixed_step = step}; }

Timeline flat_universe() { return Timeline::comoving({}, {}); }

// Of a spring with omega = 2, after a time of 1 in `steps`: by one force, and by a short and a long range in four kicks.
double spring_error(int steps, bool nested) {
  StepOptions options = fixed(1.0 / steps);
  if (nested) options.long_displacement = 1e6, options.r_cut = 0.1, options.max_substeps = 4;
  SmallRun run(Timeline::newtonian(), options);
  run.place({{0.2, 0, 0}}, {{0, 0, 0}}, {1});
  run.begin(0, springs(nested ? 3 : 4), nested ? springs(1) : nullptr);
  run.advance_to(1);
  EXPECT_EQ(run.integrator->time(), 1);
  if (nested) {
    EXPECT_EQ(run.field->short_calls, 1 + steps);
    EXPECT_EQ(run.field->long_calls, 1 + steps / 4);
  }
  return std::fabs(run.state().fractions[0][0] - 0.5 - 0.2 * std::cos(2.0));
}

TEST(Integrator, IsOfSecondOrder) {
  EXPECT_LT(spring_error(50, false), 2e-4);
  EXPECT_NEAR(spring_error(50, false) / spring_error(100, false), 4, 0.1);
  EXPECT_LT(spring_error(100, true), 1e-3);
  EXPECT_NEAR(spring_error(100, true) / spring_error(200, true), 4, 0.2);
}

// As spring_error(), stopped within a long step of four: of position and momentum (over omega).
double error_within_a_long_step(int steps) {
  StepOptions options = fixed(1.0 / steps);
  options.long_displacement = 1e6, options.r_cut = 0.1, options.max_substeps = 4;
  SmallRun run(Timeline::newtonian(), options);
  run.place({{0.2, 0, 0}}, {{0, 0, 0}}, {1});
  run.begin(0, springs(3), springs(1));
  for (int i = 0; i < steps; ++i) run.integrator->advance(2, Potentials::kNever);
  EXPECT_FALSE(run.integrator->at_boundary());
  run.integrator->synchronise();
  EXPECT_TRUE(run.integrator->at_boundary());
  EXPECT_EQ(run.field->long_calls, 1 + steps / 4 + 1);
  const HostParticles state = run.state();
  return std::hypot(state.fractions[0][0] - 0.5 - 0.2 * std::cos(2.0), state.momenta[0][0] / 2 + 0.2 * std::sin(2.0));
}

TEST(Integrator, ALongStepCanBeCutShort) {
  EXPECT_LT(error_within_a_long_step(98), 1e-3);
  EXPECT_NEAR(error_within_a_long_step(98) / error_within_a_long_step(198), std::pow(198.0 / 98, 2), 0.3);
}

TEST(Integrator, FreeParticleMovesByTheExactDriftFactor) {
  SmallRun run(flat_universe(), {.fixed_step = 0.02, .growth_exact = false}, 100);
  run.place({{0, 0, 0}}, {{3, 0, 0}}, {1});
  run.begin(std::log(0.1), uniform_field([](double) { return 0.0; }));
  run.advance_to(0);
  EXPECT_NEAR(run.state().fractions[0][0] - 0.5, 3 * run.timeline.drift_factor(std::log(0.1), 0) / 100, 1e-11);
}

TEST(Integrator, ConstantForceKicksByTheExactFactor) {
  SmallRun run(flat_universe(), {.fixed_step = 0.02, .r_cut = 1, .growth_exact = false}, 100);
  run.frame.gravitational_constant = 43;
  run.begin(std::log(0.02), uniform_field([](double) { return 2.0; }), uniform_field([](double) { return 3.0; }));
  run.advance_to(std::log(0.5));
  const double expected = 5 * 43.0 / 1e4 * run.timeline.kick_factor(std::log(0.02), std::log(0.5));
  EXPECT_NEAR(run.state().momenta[0][0], expected, 1e-5 * expected);
}

// A displacement of the growing mode from z = 19 to 1 in steps of 0.2 in ln a, and its momentum, over those of linear
// theory: the force that such a displacement feels in the smooth universe is 3/2 Omega_0 H_0^2 x.
std::array<double, 2> growth_in_long_steps(bool exact) {
  SmallRun run(flat_universe(), {.fixed_step = 0.2, .r_cut = 1, .growth_exact = exact}, 100);
  const Cosmology& cosmology = run.timeline.cosmology();
  const auto momentum = [&](double a) {
    const Growth g = cosmology.growth(a);
    return a * a * cosmology.hubble(a) * g.f1 * g.d1;
  };
  const double begin = 0.05, end = 0.5;
  run.place({{cosmology.growth(begin).d1 / 100, 0, 0}}, {{static_cast<float>(momentum(begin)), 0, 0}}, {1});
  const double rate =
      -1.5 * cosmology.background().omega0 * std::pow(cosmology.hubble(1), 2) * 100 / run.frame.acceleration_unit();
  run.begin(std::log(begin), springs(0.7 * rate), springs(0.3 * rate));
  run.advance_to(std::log(end));
  const HostParticles state = run.state();
  return {(state.fractions[0][0] - 0.5) * 100 / cosmology.growth(end).d1, state.momenta[0][0] / momentum(end)};
}

TEST(Integrator, LinearGrowthIsExactInLongSteps) {
  const auto exact = growth_in_long_steps(true), plain = growth_in_long_steps(false);
  for (const double ratio : exact) EXPECT_NEAR(ratio, 1, 2e-6);
  EXPECT_LT(plain[0], 0.995);
}

// What the integrator says of the reach before each evaluation holds, and is no more than a step's way too large.
TEST(Integrator, KnowsHowFarParticlesAreFromTheMiddle) {
  SmallRun run(Timeline::newtonian(), fixed(0.02), 3);
  run.place({{0.1, -0.05, 0}, {-0.12, 0.1, 0.02}}, {{2, 1, 0}, {-1, 0, 1}}, {1, 2});
  double known = -1;
  int evaluations = 0;
  run.forces([&](double, const FakeForces::Vectors& x, const std::vector<float>&, FakeForces::Vectors& a) {
    double reach = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t axis = 0; axis < 3; ++axis) {
        reach = std::max(reach, std::fabs(x[i][axis]));
        a[i][axis] = -30 * x[i][axis];
      }
    known = run.field->known_reach_sides;
    if (++evaluations == 1) return;  // before anything is known
    EXPECT_GE(known, reach - 1e-9);
    EXPECT_LE(known, reach + 0.04);
  });
  run.integrator->start(0, false);
  EXPECT_EQ(known, -1);
  run.advance_to(1);
  EXPECT_GT(evaluations, 40);
}

TEST(Integrator, HitsTargetsExactlyWithEqualSteps) {
  SmallRun run(flat_universe(), fixed(0.013));
  run.place({{0, 0, 0}}, {{1, 0, 0}}, {1});
  run.begin(std::log(0.25), springs(0));
  for (const double a : {0.3, 0.300001, 0.9, 1.0}) {
    const double target = std::log(a);
    run.reports.clear();
    run.advance_to(target);
    EXPECT_EQ(run.integrator->time(), target);
    EXPECT_EQ(run.integrator->state().short_kicked_to, target);
    EXPECT_EQ(run.integrator->state().long_kicked_to, target);
    for (const StepReport& report : run.reports) {
      EXPECT_LE(report.step, 0.013 * (1 + 1e-12));
      EXPECT_NEAR(report.step, run.reports[0].step, 1e-12);
    }
  }
}

TEST(Integrator, SynchronisingChangesNothingBeyondRoundOff) {
  HostParticles ends[2];
  for (int k = 0; k < 2; ++k) {
    SmallRun run(Timeline::newtonian(), fixed(0.01));
    run.place({{0.2, 0.1, 0}}, {{0.3f, 0, 0.1f}}, {1});
    run.begin(0, springs(4));
    for (int i = 0; i < 100; ++i) {
      run.integrator->advance(1, Potentials::kNever);
      if (k == 1) run.integrator->synchronise();
    }
    run.integrator->synchronise();
    EXPECT_NEAR(run.integrator->time(), 1, 1e-12);
    ends[k] = run.state();
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    EXPECT_NEAR(ends[0].fractions[0][axis], ends[1].fractions[0][axis], 1e-7);
    EXPECT_NEAR(ends[0].momenta[0][axis], ends[1].momenta[0][axis], 1e-6);
  }
}

// Whether a site alone may choose by the end of the step before.
struct IntegratorByNewest : ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Measures, IntegratorByNewest, ::testing::Bool());

TEST_P(IntegratorByNewest, StepComesFromTheLastStepOrTheOneBefore) {
  const StepOptions options = {.eta = 0.1, .softening = 0.01, .by_newest = GetParam()};
  SmallRun run(Timeline::newtonian(), options);
  run.begin(0, uniform_field([](double t) { return t > 0.045 ? 4.0 : 1.0; }));  // jumps in the fifth step of 0.01
  for (int i = 1; i <= (options.by_newest ? 5 : 6); ++i) {
    const double step = run.integrator->advance(100, Potentials::kNever).step;
    EXPECT_NEAR(step, 0.01, 1e-5) << i;  // the sixth may not know yet
  }
  EXPECT_LT(run.integrator->advance(100, Potentials::kNever).step, 0.006);
}

// Forces that depend on the rms acceleration are those of the run that was left, of its very first evaluation too.
TEST_P(IntegratorByNewest, TellsForcesTheSameRmsAccelerationAfterARestart) {
  const StepOptions options = {.fixed_step = 0.1, .by_newest = GetParam()};
  const int lag = options.by_newest ? 1 : 2;
  SmallRun run(Timeline::newtonian(), options);
  run.begin(0, uniform_field([](double t) { return 1 + t; }));
  for (int steps = 0; steps < 4; ++steps) {
    const double known = run.field->known_rms;
    EXPECT_NEAR(known, steps == 0 ? 0 : 1 + 0.1 * std::max(0, steps - lag), 1e-6) << steps;
    SmallRun rest(Timeline::newtonian(), options);
    rest.forces(uniform_field([](double t) { return 1 + t; }));
    rest.integrator->resume(run.integrator->state());
    EXPECT_EQ(rest.field->known_rms, known) << steps;
    run.integrator->advance(100, Potentials::kNever);
  }
}

TEST_P(IntegratorByNewest, StepFitsTheForceInItsMiddle) {
  const StepOptions options = {.eta = 0.1, .softening = 0.01, .by_newest = GetParam()};
  SmallRun run(Timeline::newtonian(), options);
  const auto strength = [](double t) { return std::exp(4 * t); };
  run.begin(0, uniform_field(strength));
  for (int i = 0; i < 50; ++i) {
    const StepReport report = run.integrator->advance(100, Potentials::kNever);
    if (i < 3) continue;
    const StepMeasure middle{strength(report.t - 0.5 * report.step), 0, 0};
    EXPECT_NEAR(report.step, short_step(options, run.timeline, 0, middle), 2e-3 * report.step);
  }
}

TEST(Integrator, LongStepHoldsWholeShortSteps) {
  SmallRun run(flat_universe(), {.eta = 0.02, .softening = 0.01, .r_cut = 10}, 100);
  run.frame.gravitational_constant = 43;
  run.place({{0.1, 0, 0}}, {{0, 0, 0}}, {1});
  // Acceleration grows by ten on the way, so that the number of short steps changes.
  run.begin(std::log(0.3), uniform_field([](double t) { return 1e6 * std::exp(2 * t); }),
            uniform_field([](double) { return 1.0; }));
  int short_steps = 0, fewest = 1000, most = 0;
  double covered = 0;
  while (run.integrator->time() < 0) {
    const StepReport report = run.integrator->advance(0, Potentials::kNever);
    const double long_step = run.integrator->state().long_end - run.integrator->state().long_begin;
    EXPECT_LE(long_step, 0.02 * (1 + 1e-9));
    ++short_steps;
    covered += report.step;
    if (!report.long_boundary) continue;
    EXPECT_NEAR(covered, long_step, 1e-12);
    fewest = std::min(fewest, short_steps);
    most = std::max(most, short_steps);
    short_steps = 0;
    covered = 0;
  }
  EXPECT_GT(fewest, 1);
  EXPECT_GT(most, fewest);
}

TEST(Integrator, RefusesAForceThatIsNotANumber) {
  SmallRun run(Timeline::newtonian(), fixed(0.1));
  run.begin(0, uniform_field([](double t) { return t > 0.2 ? std::numeric_limits<double>::quiet_NaN() : 1.0; }));
  EXPECT_THROW(run.advance_to(1), Error);
}

TEST(Integrator, RefusesASpeedThatDriftsCannotHold) {
  SmallRun run(flat_universe(), fixed(0.1));
  run.place({{0, 0, 0}}, {{1e12f, 0, 0}}, {1});
  run.begin(-1, uniform_field([](double) { return 0.0; }));
  test::expect_error([&] { run.advance_to(0); }, {"moves through the whole box", "velocities"});
}

}  // namespace
}  // namespace maki
