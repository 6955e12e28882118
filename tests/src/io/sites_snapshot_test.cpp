// Snapshots of a run over sites: each site's file of one set, which readers take for one snapshot.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/io/hdf5_file.hpp"
#include "src/io/snapshot_io.hpp"
#include "tests/sites/replayed_sites.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using test::make_snapshot;
using test::TempDir;

// The site's rows [begin, end) of the whole.
Snapshot rows_of(const Snapshot& whole, std::size_t begin, std::size_t end) {
  Snapshot part;
  part.header = whole.header;
  const auto cut = [&](auto& to, const auto& from) {
    to.assign(from.begin() + static_cast<std::ptrdiff_t>(begin), from.begin() + static_cast<std::ptrdiff_t>(end));
  };
  cut(part.positions, whole.positions);
  cut(part.velocities, whole.velocities);
  cut(part.masses, whole.masses);
  cut(part.ids, whole.ids);
  return part;
}

void expect_same(const Snapshot& a, const Snapshot& b) {
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.positions, b.positions);
  ASSERT_EQ(a.masses.size(), b.masses.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_FLOAT_EQ(a.masses[i], b.masses[i]);
    for (std::size_t axis = 0; axis < 3; ++axis) ASSERT_FLOAT_EQ(a.velocities[i][axis], b.velocities[i][axis]);
  }
  EXPECT_EQ(a.header.time, b.header.time);
}

// Where the sites' parts of 1000 particles end; the second has none in the last case.
const std::vector<std::vector<std::size_t>> kEnds = {{1000}, {400, 1000}, {10, 700, 1000}, {500, 500, 1000}};

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

TEST(SitesSnapshot, IsOneSetOfAFileASite) {
  for (const auto& ends : kEnds) {
    for (const bool equal_masses : {true, false}) {
      for (const int deflate : {0, 4}) {
        SCOPED_TRACE(testing::Message() << ends.size() << " sites, deflate " << deflate);
        TempDir dir;
        const Snapshot whole = make_snapshot(1000, equal_masses);
        const auto count = static_cast<int>(ends.size());
        std::vector<std::string> names(ends.size());
        test::replay_sites(count, [&](sites::Sites& sites) {
          const auto me = static_cast<std::size_t>(sites.me());
          WriteOptions options;
          options.deflate = deflate;
          names[me] = write_snapshot(dir / "snapshot_003.hdf5", rows_of(whole, me == 0 ? 0 : ends[me - 1], ends[me]),
                                     test::make_provenance(), options, {}, {Communicator::self(), sites})
                          .at(0);
        });
        EXPECT_EQ(dir.entries(), ends.size());
        for (std::size_t site = 0; site < ends.size() && count > 1; ++site)
          EXPECT_EQ(names[site], dir / fmt::format("snapshot_003.{}.hdf5", site));
        for (const std::string& name : {dir / "snapshot_003.hdf5", dir / "snapshot_003", names.back()}) {
          ReadReport report;
          expect_same(read_snapshot(name, &report), whole);
          EXPECT_EQ(report.files, names);
          EXPECT_EQ(report.counts[1], 1000u);
          EXPECT_NEAR(report.mean_density_ratio, 1, 1e-3);
          EXPECT_EQ(count_particles(name), 1000u);
          test::expect_contains(text_of(describe_file(name)), {"1000"});
        }
      }
    }
  }
}

// One file alone says which others are missing.
TEST(SitesSnapshot, IsNotReadWhereAFileIsMissing) {
  TempDir dir;
  const Snapshot whole = make_snapshot(100);
  test::replay_sites(2, [&](sites::Sites& sites) {
    const std::size_t begin = sites.me() == 0 ? 0 : 60, end = sites.me() == 0 ? 60 : 100;
    write_snapshot(dir / fmt::format("{}.hdf5", sites.me() == 0 ? "here" : "elsewhere"), rows_of(whole, begin, end),
                   test::make_provenance(), {}, {}, {Communicator::self(), sites});
  });
  test::expect_contains(test::error_of([&] { read_snapshot(dir / "here.0.hdf5"); }),
                        {"here", "incomplete", "here.1.hdf5"});
}

// Masses and ids of another site decide with the own ones how they are written.
TEST(SitesSnapshot, HasOneKindOfMassesAndIds) {
  TempDir dir;
  Snapshot whole = make_snapshot(100);
  whole.masses.back() *= 2;
  whole.ids.back() = std::uint64_t{1} << 40;
  test::replay_sites(2, [&](sites::Sites& sites) {
    const std::size_t begin = sites.me() == 0 ? 0 : 60, end = sites.me() == 0 ? 60 : 100;
    write_snapshot(dir / "s.hdf5", rows_of(whole, begin, end), test::make_provenance(), {}, {},
                   {Communicator::self(), sites});
  });
  expect_same(read_snapshot(dir / "s.hdf5"), whole);
  H5Id file = open_hdf5(dir / "s.0.hdf5");
  EXPECT_TRUE(hdf5_exists(open_group(file, "PartType1"), "Masses"));
  H5Id group = open_group(file, "PartType1");
  H5Id ids = open_dataset(group, "ParticleIDs");
  EXPECT_EQ(H5Tget_size(H5Id(H5Dget_type(ids), H5Tclose)), 8u);
}

}  // namespace
}  // namespace maki
