// A site of all ranks and one of the first rank alone: the forces of one job with all particles, bit for bit.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "host/fft/particle_brick.hpp"
#include "host/fft/pencil_mesh.hpp"
#include "tests/test_stream.hpp"
#include "wan/sites/ring.hpp"
#include "wan/sites/site_mesh.hpp"

namespace maki::sites {
namespace {

using Set = std::vector<SourceParticle>;

struct OnDevice : DeviceBuffer<SourceParticle> {
  explicit OnDevice(const Set& set) : DeviceBuffer("test.source") { upload(test::test_stream(), set); }
};

struct Site {
  std::unique_ptr<Sites> sites;
  std::unique_ptr<SiteMesh> outside;
  std::unique_ptr<PencilMesh> mesh;

  Site(std::unique_ptr<Ring> ring, const Communicator& ranks, const MeshOptions& options, const ForceLaw& law)
      : sites(std::make_unique<Sites>(std::move(ring), std::vector<std::string>{"wide", "far"}, ranks)),
        outside(std::make_unique<SiteMesh>(*sites)), mesh(std::make_unique<PencilMesh>(ranks, options, law)) {
    outside->set_slabs(Slabs(2, 0.1), 0.001);
    outside->set_piece(5000);
    mesh->set_outside(outside.get());
  }
};

std::vector<float> forces(PencilMesh& mesh, const OnDevice& source, const MassUnit& unit) {
  VectorArray a("test.acceleration");
  a.resize(source.size());
  mesh.long_range(test::test_stream(), source.data(), source.size(), unit, a.view(), nullptr);
  const std::vector<float> x = a.x.download(test::test_stream()), y = a.y.download(test::test_stream()),
                           z = a.z.download(test::test_stream());
  std::vector<float> all;
  for (std::size_t i = 0; i < x.size(); ++i) all.insert(all.end(), {x[i], y[i], z[i]});
  return all;
}

TEST(SiteMeshRanks, ForcesAreThoseOfOneJob) {
  const Communicator world = Communicator::world();
  ForceLaw law;
  law.split = Split::kPolynomial;
  law.r_cut = 0.12f;
  for (int mass_bits : {0, 10}) {
    const MeshOptions options{32, Assignment::kPcs, Gradient::kAnalytic, Interlacing::kFull, mass_bits};
    std::mt19937 random(9);
    const auto any = [&] { return static_cast<std::uint32_t>(random()); };
    Set mine, far, all;  // of this rank
    for (int i = 0; i < 600; ++i) {
      const SourceParticle p{any(), any(), any(), 1.0f};
      if (p.x < 0x80000000u && i % world.size() == world.rank()) mine.push_back(p);
      if (p.x >= 0x80000000u && world.rank() == 0) far.push_back(p);
    }
    all = mine;
    all.insert(all.end(), far.begin(), far.end());
    const OnDevice here(mine), there(far), both(all);
    PencilMesh one(world, options, law);
    const MassUnit unit =
        choose_mass_unit(options.assignment, options.cells,
                         mass_totals(world, test::test_stream(), both.data(), both.size()), options.mass_bits);
    std::vector<float> expected = forces(one, both, unit);

    std::vector<std::unique_ptr<Ring>> rings(2);
    if (world.rank() == 0) rings = make_memory_rings(2);
    std::unique_ptr<Site> other;
    if (world.rank() == 0) {
      other = std::make_unique<Site>(std::move(rings[1]), Communicator::self(), options, law);
      other->mesh->begin(test::test_stream(), there.data(), there.size(), unit);
    }
    Site site(std::move(rings[0]), world, options, law);
    site.mesh->begin(test::test_stream(), here.data(), here.size(), unit);
    std::vector<float> found = forces(*site.mesh, here, unit);
    if (other)
      for (float f : forces(*other->mesh, there, unit)) found.push_back(f);
    EXPECT_EQ(found, expected);
    EXPECT_EQ(site.outside->counters().shared_planes, 0u);
  }
}

}  // namespace
}  // namespace maki::sites
