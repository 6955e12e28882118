// Power spectra and pictures of a run over sites are the same files at all sites, and those of a run at one site.
#include "src/run/products.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/sites/replayed_sites.hpp"
#include "tests/src/io/io_helpers.hpp"
#include "wan/sites/gathered_set.hpp"

namespace maki {
namespace {

using namespace test;

TEST(SitesProducts, AreTheFilesOfOneSiteByteByByte) {
  TempDir dir;
  auto set = testing::uniform_set(3000, 5);
  for (SourceParticle& p : set) p.mass = 1.5f;
  const SnapshotHeader header = make_snapshot(1).header;
  const Frame frame = make_frame(header, header.box_size, {25, 25, 25});
  const Stream& stream = test_stream();
  PictureOptions picture;
  picture.pixels = 64;
  const auto write = [&](const DeviceSet& whole, const std::string& name) {
    write_power_of(whole, {16}, dir / (name + ".txt"), make_provenance(), true);
    write_picture_of(whole, picture, dir / (name + ".png"), make_provenance(), true);
  };
  const OnDevice all(set);
  sites::Sites alone(Communicator::self());
  write({stream, all, frame, header, alone}, "one");
  for (const int count : {2, 3}) {
    replay_sites(count, [&](sites::Sites& sites) {
      std::vector<SourceParticle> own;
      for (const SourceParticle& p : set)
        if (static_cast<int>(std::uint64_t{p.x} * static_cast<std::uint64_t>(count) >> 32) == sites.me())
          own.push_back(p);
      const OnDevice mine(own);
      const sites::GatheredSet gathered(sites, stream, mine);
      const std::string name = "at_" + sites.name(sites.me());
      write({stream, gathered.share(), frame, header, sites, gathered.place()}, name);
    });
    for (const std::string& site : replayed_names(count)) {
      EXPECT_EQ(text_of(dir / ("at_" + site + ".txt")), text_of(dir / "one.txt")) << site;
      EXPECT_EQ(text_of(dir / ("at_" + site + ".png")), text_of(dir / "one.png")) << site;
    }
  }
  EXPECT_GT(text_of(dir / "one.png").size(), 1000u);
}

}  // namespace
}  // namespace maki
