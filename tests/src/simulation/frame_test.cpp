#include "src/simulation/frame.hpp"

#include <gtest/gtest.h>

#include "kernels/error.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

Snapshot two_particles(bool comoving) {
  Snapshot snapshot;
  snapshot.header.comoving = comoving;
  snapshot.header.time = comoving ? 0.25 : 3;
  snapshot.header.box_size = 50;
  snapshot.positions = {{1, 2, 3}, {49, 25, 0}};
  snapshot.velocities = {{100, -200, 300}, {0, 0, 1}};
  snapshot.masses = {1, 2};
  snapshot.ids = {7, 8};
  return snapshot;
}

TEST(Frame, ParticlesGoInAndComeBack) {
  const Stream& stream = test::test_stream();
  for (const bool comoving : {true, false}) {
    const Snapshot before = two_particles(comoving);
    const Frame frame = make_frame(before.header, 50, {25, 25, 25});
    Particles particles;
    load_particles(stream, before, frame, particles);
    // p = a v
    EXPECT_EQ(download_particles(stream, particles).momenta[0][1], comoving ? -50 : -200);
    const Snapshot after = store_particles(stream, particles, frame, before.header);
    EXPECT_EQ(after.ids, before.ids);
    EXPECT_EQ(after.masses, before.masses);
    EXPECT_EQ(after.velocities, before.velocities);
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t axis = 0; axis < 3; ++axis)
        EXPECT_NEAR(after.positions[i][axis], before.positions[i][axis], 1e-12);
  }
}

TEST(Frame, NewtonsConstantIsTheHeadersOrThatOfItsUnits) {
  SnapshotHeader header;
  EXPECT_NEAR(make_frame(header, 1, {}).gravitational_constant, 43.007, 0.01);
  header.gravitational_constant = 1;
  EXPECT_EQ(make_frame(header, 1, {}).gravitational_constant, 1);
}

TEST(Frame, DoublingKeepsTheMiddle) {
  Frame frame = make_frame(two_particles(false).header, 8, {1, 2, 3});
  EXPECT_EQ(frame.corner, (std::array<double, 3>{-3, -2, -1}));
  double_frame(frame);
  EXPECT_EQ(frame.side, 16);
  EXPECT_EQ(frame.corner, (std::array<double, 3>{-7, -6, -5}));
  EXPECT_EQ(frame.doublings, 1);
}

TEST(Frame, ParticlesOutsideAreNamed) {
  const Stream& stream = test::test_stream();
  Particles particles;
  try {
    load_particles(stream, two_particles(true), make_frame(two_particles(true).header, 40, {20, 20, 20}), particles);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("particle 8"), std::string::npos);
  }
  EXPECT_THROW(make_frame(two_particles(true).header, 0, {}), Error);
}

}  // namespace
}  // namespace maki
