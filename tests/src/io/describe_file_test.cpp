// What `maki info` says of files, and of those that it refuses.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "src/groups/catalogue.hpp"
#include "src/groups/progenitors.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/lightcone/sky_map.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using namespace test;
using DescribeFile = InTempDir;

std::string description(const std::string& path) { return text_of(describe_file(path)); }

std::string refusal(const std::string& path) {
  return error_of([&] { describe_file(path); });
}

void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

TEST_F(DescribeFile, TellsWhatIsInAFile) {
  Provenance provenance = make_provenance();
  provenance.force_error = {4.2e-4, 2e-4, 2.1e-3, 512};
  write_snapshot(dir / "s.hdf5", make_snapshot(10), provenance);
  expect_contains(description(dir / "s.hdf5"),
                  {"GADGET HDF5", "particles    10", "z = 3", "50 Mpc/h", "Omega0 0.308", "Maki 0.1.0", "0123456789ab",
                   "g++ 12.2.0", "size = \"50 Mpc/h\"", "PartType1/Coordinates", "float64", "0.00042 of the rms force",
                   "0.0021 (99 %)", "512 particles"});
  write_snapshot(dir / "b", make_snapshot(10), {}, {.format = SnapshotFormat::kGadgetBinary2, .big_endian = true});
  expect_contains(description(dir / "b"), {"GADGET binary type 2, big endian", "h 0.678"});
}

TEST_F(DescribeFile, TellsOfACatalogueAndItsLinks) {
  const GroupCatalogue catalogue{
      make_snapshot(1000).header, 0.2, 32, 1000, {{.length = 3}, {.length = 2}}, {7, 8, 9, 1, 2}};
  write_group_catalogue(dir / "groups_003.hdf5", catalogue, make_provenance());
  expect_contains(description(dir / "groups_003.hdf5"),
                  {"a catalogue of groups", "2, with 5 members of 1000 particles", "linking length 0.2", "z = 3",
                   "50 Mpc/h", "Group/GroupMass              float32  2, 1e10 Msun/h",
                   "Group/GroupPos               float32  2 x 3, Mpc/h, comoving",
                   "float32  2 x 3, km/s, times a^-1: physical", "IDs/ID                       uint32   5",
                   "Maki 0.1.0", "size = \"50 Mpc/h\""});
  CatalogueGroups later = read_catalogue_groups(dir / "groups_003.hdf5"), earlier = later;
  later.name = "groups_004.hdf5", later.redshift = 1;
  write_merger_links(dir / "links_004.hdf5", link_catalogues(earlier, later), earlier, later);
  expect_contains(description(dir / "links_004.hdf5"),
                  {"links of groups to their progenitors", "'groups_004.hdf5', z = 1, 2 groups",
                   "'groups_003.hdf5', z = 3", "Progenitors/Shared           int64    2, Particles in both",
                   "PreviousGroup/Descendant", "Maki 0.1.0", "size = \"50 Mpc/h\""});
}

TEST_F(DescribeFile, TellsOfAMapOfTheSky) {
  const Communicator ranks = Communicator::self();
  for (const int nside : {2, 64}) {
    const SkyMapFile file{dir / "map.fits", 1, "1e10 Msun/h", {{"ZNEAR", "redshift of the near edge", 0.5}}, true};
    write_sky_map(file, SkyMap(ranks, nside), ranks);
    expect_contains(description(dir / "map.fits"),
                    {"a map of the sky", "RING order, " + std::to_string(12 * nside * nside) + " pixels",
                     "rows         48", "MASS", "1e10 Msun/h", "ZNEAR        0.5  redshift of the near edge"});
  }
  for (const std::uintmax_t bytes : {9000u, 3000u, 100u}) {
    std::filesystem::resize_file(dir / "map.fits", bytes);
    expect_contains(refusal(dir / "map.fits"), {"cannot read", "is cut off"});
  }
}

TEST_F(DescribeFile, TellsOfTables) {
  write(dir / "power_000.txt", "# Power spectrum\n# Redshift 3\n#  K  P\n 0.1 200\n 0.2 1e2\n 0.3 nan\n");
  expect_contains(description(dir / "power_000.txt"),
                  {"a table of numbers", "rows         3", "2: K  P", "Redshift 3"});
}

std::string chunk(const std::string& name, const std::string& data) {
  std::string length(4, '\0');
  length[3] = static_cast<char>(data.size());
  return length + name + data + "sum!";
}

TEST_F(DescribeFile, TellsOfPictures) {
  using namespace std::string_literals;
  const std::string start = "\x89PNG\r\n\x1a\n" + chunk("IHDR", "\0\0\1\0\0\0\2\0....."s),
                    text = chunk("tEXt", "Title\0z = 3"s) + chunk("tEXt", "Configuration\0[box]\nsize = 5"s);
  write(dir / "image_003.png", start + text + chunk("IDAT", "xyz") + chunk("IEND", ""));
  expect_contains(description(dir / "image_003.png"), {"256 x 512 pixels", "Title        z = 3", "  size = 5"});
  write(dir / "image_003.png", start + text.substr(0, 9));
  expect_contains(refusal(dir / "image_003.png"), {"the picture is cut off"});
}

TEST_F(DescribeFile, RefusesTheRestWithTheReason) {
  write(dir / "run.toml", "# A run\n[box]\nsize = 5\n");
  expect_contains(refusal(dir / "run.toml"), {"it is text, and no table"});
  write(dir / "noise", "\x01\x02 noise");
  expect_contains(refusal(dir / "noise"), {"neither an HDF5 file nor GADGET binary"});
  std::filesystem::create_directory(dir / "restart_000007");
  write(dir / "restart_000007/complete.toml", "step = 7\n");
  write(dir / "restart_000007/rank_0.hdf5", "state");
  for (const char* name : {"restart_000007", "restart_000007/rank_0.hdf5"})
    expect_contains(refusal(dir / name), {"a restart", "maki resume"});
  expect_contains(refusal(dir.path()), {"it is a directory"});
}

}  // namespace
}  // namespace maki
