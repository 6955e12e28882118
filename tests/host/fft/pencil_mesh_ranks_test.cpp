#include "host/fft/pencil_mesh.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "host/fft/particle_brick.hpp"
#include "host/fft/pencil_fft.hpp"
#include "kernels/error.hpp"
#include "tests/kernels/mesh/field_of.hpp"
#include "tests/kernels/particles/sets.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

using test::Field, test::OnDevice;
using Set = std::vector<SourceParticle>;

constexpr Assignment kClouds[] = {Assignment::kCic, Assignment::kTsc, Assignment::kPcs};

enum class Division {
  kSlabs,  // in x; the share of every third rank goes to the one before it
  kEverywhere,
  kLastRank,  // holds all
};
constexpr Division kDivisions[] = {Division::kSlabs, Division::kEverywhere, Division::kLastRank};

int owner(const SourceParticle& p, std::size_t i, Division division, int ranks) {
  if (division == Division::kLastRank) return ranks - 1;
  if (division == Division::kEverywhere) return static_cast<int>(i) % ranks;
  const int slab = static_cast<int>(static_cast<std::uint64_t>(p.x) * static_cast<unsigned>(ranks) >> 32);
  return slab % 3 == 1 ? slab - 1 : slab;
}

struct Share {
  Set particles;
  std::vector<std::size_t> number;  // in the whole set
};
Share share_of(const Set& set, Division division, const Communicator& ranks) {
  Share share;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (owner(set[i], i, division, ranks.size()) != ranks.rank()) continue;
    share.particles.push_back(set[i]);
    share.number.push_back(i);
  }
  return share;
}

bool same_bits(const MassUnit& a, const MassUnit& b) {
  return a.bits == b.bits && a.equal_units == b.equal_units && a.units_per_mass == b.units_per_mass &&
         a.quantum == b.quantum && a.mean == b.mean && a.largest_cell == b.largest_cell;
}

class PencilMeshes : public ::testing::Test {
 protected:
  const Stream& stream = test::test_stream();
  const Communicator world = Communicator::world(), alone = Communicator::self();
};

TEST_F(PencilMeshes, UnitOfMassIsThatOfTheWholeSet) {
  for (Division division : kDivisions) {
    for (int kind = 0; kind < 4; ++kind) {
      Set set = testing::clumped_set(kind == 3 ? 0 : 200, 3, kind == 0);
      if (kind == 2) set[7].mass = 0;
      const OnDevice whole(set), mine(share_of(set, division, world).particles);
      for (Assignment cloud : kClouds)
        EXPECT_TRUE(same_bits(choose_mass_unit(world, stream, cloud, 16, mine.data(), mine.size()),
                              choose_mass_unit(stream, cloud, 16, whole.data(), whole.size())));
    }
  }
}

TEST_F(PencilMeshes, BadMassOnOneRankIsAnErrorOnAll) {
  Set set = testing::clumped_set(50, 3, true);
  set[20].mass = -1;
  const OnDevice mine(share_of(set, Division::kEverywhere, world).particles);
  EXPECT_THROW(choose_mass_unit(world, stream, Assignment::kTsc, 16, mine.data(), mine.size()), Error);
}

// The second of two steps: it finds the brick and the tables.
Field second_field_of(const Communicator& ranks, PencilMesh& mesh, const Set& set) {
  const OnDevice source(set);
  const MassUnit unit = choose_mass_unit(ranks, test::test_stream(), mesh.options().assignment, mesh.options().cells,
                                         source.data(), set.size());
  return test::field_of(mesh, set, unit, true, 2);
}

long different(const std::vector<float>& mine, const Share& share, const std::vector<float>& whole) {
  long count = 0;
  for (std::size_t i = 0; i < mine.size(); ++i)
    count += std::memcmp(&mine[i], &whole[share.number[i]], sizeof(float)) != 0;
  return count;
}

Field field_on_first_rank(const MeshOptions& options, const ForceLaw& law, const Set& set) {
  const Communicator world = Communicator::world();
  Field field;
  if (world.rank() == 0) {
    PencilMesh mesh(Communicator::self(), options, law);
    field = second_field_of(Communicator::self(), mesh, set);
  }
  for (std::vector<float>* values : {&field.x, &field.y, &field.z, &field.potential}) {
    values->resize(set.size());
    world.broadcast(values->data(), values->size() * sizeof(float), 0);
  }
  return field;
}

// At each of `steps` all particles have moved further: at first within the room of the brick, then not.
void expect_forces_of_one_rank(const MeshOptions& options, Division division,
                               Set set = testing::clumped_set(300, 3, false), int steps = 1) {
  SCOPED_TRACE(::testing::Message() << options.cells << " cells, cloud " << static_cast<int>(options.assignment)
                                    << ", gradient " << static_cast<int>(options.gradient) << ", interlacing "
                                    << static_cast<int>(options.interlacing) << ", division "
                                    << static_cast<int>(division));
  const ForceLaw law = make_force_law(Split::kPolynomial, 5, 2.5 / options.cells, Softening::kPlummer, 1e-4);
  PencilMesh mesh(Communicator::world(), options, law);
  for (int step = 0; step < steps; ++step) {
    SCOPED_TRACE(step);
    const Share share = share_of(set, division, Communicator::world());
    const Field mine = second_field_of(Communicator::world(), mesh, share.particles),
                whole = field_on_first_rank(options, law, set);
    EXPECT_EQ(different(mine.x, share, whole.x), 0);
    EXPECT_EQ(different(mine.y, share, whole.y), 0);
    EXPECT_EQ(different(mine.z, share, whole.z), 0);
    EXPECT_EQ(different(mine.potential, share, whole.potential), 0);
    for (SourceParticle& p : set) p.x += 0x01000000u << (4 * step), p.z -= 0x00800000u << (4 * step);
  }
}

TEST_F(PencilMeshes, ForcesAreTheSameBitsForAnyNumberOfRanks) {
  const std::pair<Gradient, Interlacing> kinds[] = {{Gradient::kSpectral, Interlacing::kNone},
                                                    {Gradient::kSpectral, Interlacing::kAssignment},
                                                    {Gradient::kFourPoint, Interlacing::kAssignment},
                                                    {Gradient::kAnalytic, Interlacing::kNone},
                                                    {Gradient::kAnalytic, Interlacing::kFull}};
  for (const auto& [gradient, interlacing] : kinds)
    expect_forces_of_one_rank({16, Assignment::kPcs, gradient, interlacing}, Division::kSlabs);
  expect_forces_of_one_rank({18, Assignment::kCic, Gradient::kFourPoint, Interlacing::kFull}, Division::kEverywhere);
  expect_forces_of_one_rank({18, Assignment::kTsc, Gradient::kSpectral, Interlacing::kFull}, Division::kEverywhere);
  expect_forces_of_one_rank({18, Assignment::kTsc, Gradient::kFourPoint, Interlacing::kNone}, Division::kLastRank);
  for (const Division division : kDivisions)
    expect_forces_of_one_rank({32, Assignment::kTsc, Gradient::kAnalytic, Interlacing::kAssignment}, division,
                              testing::clumped_set(400, 3, true), 4);
  expect_forces_of_one_rank({80, Assignment::kPcs, Gradient::kAnalytic, Interlacing::kFull}, Division::kSlabs,
                            testing::clumped_set(4000, 3, false), 4);  // several slabs of blocks on a rank
}

TEST_F(PencilMeshes, TheForceOnALoneHeavyParticleToo) {
  Set set = testing::clumped_set(1500, 3, false);
  set[3].mass = 1e4f;
  for (const Interlacing interlacing : {Interlacing::kNone, Interlacing::kFull})
    for (const Division division : kDivisions)
      expect_forces_of_one_rank({16, Assignment::kPcs, Gradient::kAnalytic, interlacing}, division, set);
}

// A clump of particles on every rank: a small brick, and few bytes.
TEST_F(PencilMeshes, SendsNoMoreThanTheBricks) {
  const int m = 32;
  PencilFft fft(world, m);
  ParticleBrick brick(world, fft.layout(), fft.real_row(), Assignment::kPcs, true);
  DeviceBuffer<float> mesh("test.mesh", fft.size()), shifted("test.shifted", fft.size());
  const OnDevice mine(Set{{0xfff00000u, 0x100u, 0x80000000u, 1.0f}, {0x100u, 0xff000000u, 0x81000000u, 1.0f}});
  const MassUnit unit = choose_mass_unit(world, stream, Assignment::kPcs, m, mine.data(), mine.size());
  const std::uint64_t before = world.traffic().bytes;  // 0 where GPUs exchange by themselves
  brick.assign(stream, mine.data(), mine.size(), unit, mesh.data(), shifted.data());
  for (int axis = 0; axis < 3; ++axis) EXPECT_LE(brick.box().extent[axis], 2 + 4 + 4);
  EXPECT_EQ(brick.box().origin[0], m - 1 - 3);
  EXPECT_LE(world.traffic().bytes - before, 2 * 8 * brick.box().size());
  brick.fetch(stream, mesh.data());
  EXPECT_LE(world.traffic().bytes - before,
            (2 * 8 + 4 * static_cast<std::size_t>(world.size() - 1)) * brick.box().size());
  EXPECT_EQ(world.traffic().empty, 0u);
  brick.assign(stream, mine.data(), 0, unit, mesh.data(), shifted.data());  // kept, though nobody is there
  EXPECT_GT(brick.box().size(), 0u);
}

}  // namespace
}  // namespace maki
