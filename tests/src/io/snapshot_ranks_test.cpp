// Files do not depend on how many ranks write them, nor on how many read them.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <optional>

#include "src/io/hdf5_file.hpp"
#include "src/io/snapshot_writer.hpp"
#include "tests/small_disk.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using namespace test;

constexpr auto k1 = SnapshotFormat::kGadgetBinary1;
constexpr auto k2 = SnapshotFormat::kGadgetBinary2;

struct Kind {
  WriteOptions options;
  std::size_t particles = 1000;
  bool equal_masses = true;
};
const std::vector<Kind> kKinds = {
    {{}},
    {{.files = 3}, 1000, false},
    {{.coordinates = CoordinateNumbers::kFloat, .id_bits = 64}},
    {{.deflate = 1}, 150000},  // three chunks
    {{.files = 2, .deflate = 6}, 1001, false},
    {{}, 5, false},  // fewer than ranks
    {{.coordinates = CoordinateNumbers::kFixed32, .velocities = VelocityNumbers::kHalf}, 150000},
    {{.files = 2, .coordinates = CoordinateNumbers::kFixed32, .layout = FileLayout::kSwift, .deflate = 2}, 1001, false},
    {{.format = k1, .id_bits = 64}},
    {{.format = k1, .files = 2, .coordinates = CoordinateNumbers::kFloat, .big_endian = true}, 1000, false},
    {{.format = k2}, 1001, false},
    {{.format = k2, .files = 2, .coordinates = CoordinateNumbers::kFloat, .id_bits = 64, .big_endian = true}},
};

ExtraDataset extra_rows(const Snapshot& s) {
  std::vector<std::array<double, 3>> acceleration;
  for (const auto id : s.ids) acceleration.push_back({1.0 * static_cast<double>(id), 0.5, -2});
  ExtraDataset extra = acceleration_dataset(acceleration, s.header);
  extra.double_precision = true;
  return extra;
}

// `h`: the factor from the units read to those written.
void expect_same_header(const SnapshotHeader& read, const SnapshotHeader& written, double h) {
  EXPECT_EQ(read.comoving, written.comoving);
  EXPECT_DOUBLE_EQ(read.time, written.time);
  EXPECT_NEAR(read.redshift, written.redshift, 1e-12);
  EXPECT_DOUBLE_EQ(read.box_size * h, written.box_size);
  EXPECT_DOUBLE_EQ(read.omega0, written.omega0);
  EXPECT_DOUBLE_EQ(read.omega_lambda, written.omega_lambda);
  EXPECT_DOUBLE_EQ(read.hubble, written.hubble);
  EXPECT_DOUBLE_EQ(read.units.length_cgs, written.units.length_cgs);
  EXPECT_DOUBLE_EQ(read.units.mass_cgs, written.units.mass_cgs);
  EXPECT_DOUBLE_EQ(read.units.velocity_cgs, written.units.velocity_cgs);
}

class SnapshotRanks : public InSharedDir {
 protected:
  const int rank = world.rank(), size = world.size();

  Snapshot share(const Snapshot& all, Shares how) const {
    return rows_of(all, begin_of(how, all.size(), rank, size), begin_of(how, all.size(), rank + 1, size));
  }
  std::string error(const std::string& path, const Communicator& readers) const {
    return error_of([&] { read_snapshot(path, nullptr, readers); });
  }
};

TEST_F(SnapshotRanks, WriteTheFilesOfOneRank) {
  for (const Kind& kind : kKinds) {
    const Snapshot all = make_snapshot(kind.particles, kind.equal_masses);
    const auto extras = [&](const Snapshot& s) {
      return kind.options.format == SnapshotFormat::kGadgetHdf5 ? std::vector<ExtraDataset>{extra_rows(s)}
                                                                : std::vector<ExtraDataset>{};
    };
    std::vector<std::string> whole;
    if (rank == 0) whole = write_snapshot(dir / "one", all, make_provenance(), kind.options, extras(all));
    for (const Shares how : {Shares::kEven, Shares::kGaps, Shares::kLast}) {
      WriteOptions options = kind.options;
      options.overwrite = true;
      const Snapshot own = share(all, how);
      const auto files = write_snapshot(dir / "many", own, make_provenance(), options, extras(own), world);
      ASSERT_EQ(files.size(), static_cast<std::size_t>(options.files));
      for (std::size_t i = 0; i < whole.size(); ++i)
        EXPECT_TRUE(text_of(whole[i]) == text_of(files[i])) << files[i] << ", kind " << &kind - kKinds.data();
    }
    world.barrier();
    for (const auto& file : whole) std::filesystem::remove(file);
  }
}

// Ranks that would give it different times pass the same chunks.
TEST_F(SnapshotRanks, PassChunksTogether) {
  const Snapshot all = make_snapshot(150000, false), own = share(all, Shares::kEven);
  SnapshotWriter writer(world);
  writer.begin(dir / "s.hdf5", {std::make_shared<SnapshotSource>(own)}, make_provenance(), {.deflate = 1});
  std::optional<SnapshotOutcome> outcome;
  for (int turn = 0; !outcome; ++turn) outcome = writer.look((rank + turn) % 2 == 0 ? 0 : 1e9);
  EXPECT_EQ(outcome->problem, "");
  if (rank == 0) {
    EXPECT_EQ(read_snapshot(dir / "s.hdf5").ids, all.ids);
  }
}

TEST_F(SnapshotRanks, ReadTheirSharesInOrder) {
  for (const Kind& kind : kKinds) {
    const Snapshot all = make_snapshot(kind.particles, kind.equal_masses);
    WriteOptions options = kind.options;
    options.overwrite = true;
    write_snapshot(dir / "s", share(all, Shares::kGaps), make_provenance(), options, {}, world);
    const Communicator readers = world.split(rank < 1 ? 0 : rank < 4 ? 1 : 2, rank);  // 1, 3 and the rest
    for (const Communicator& some : {world, readers}) {
      ReadReport report, of_one;
      const Snapshot own = read_snapshot(dir / (options.files > 1 ? "s.1" : "s"), &report, some);
      const std::size_t begin = share_begin(all.size(), some.rank(), some.size());
      ASSERT_EQ(own.size(), share_begin(all.size(), some.rank() + 1, some.size()) - begin);
      const double h = options.layout == FileLayout::kSwift ? 0.678 : 1;
      const bool exact = options.coordinates == CoordinateNumbers::kDouble;
      for (std::size_t i = 0; i < own.size(); ++i) {
        ASSERT_EQ(own.ids[i], all.ids[begin + i]);
        ASSERT_FLOAT_EQ(own.masses[i] * static_cast<float>(h), all.masses[begin + i]);
        for (std::size_t axis = 0; axis < 3; ++axis) {
          const double near = options.coordinates == CoordinateNumbers::kFloat ? 4e-6 : exact ? 0 : 1e-8;
          ASSERT_NEAR(own.positions[i][axis] * h, all.positions[begin + i][axis], near);
          const float v = all.velocities[begin + i][axis];
          const float off = options.velocities == VelocityNumbers::kHalf ? 0x1p-11f : 1e-6f;
          ASSERT_NEAR(own.velocities[i][axis], v, 1.01f * off * std::abs(v));
        }
      }
      expect_same_header(own.header, all.header, h);
      EXPECT_NEAR(report.mean_density_ratio, 1, all.size() > 100 ? 1e-3 : 1);
      EXPECT_EQ(report.counts[1], all.size());
      EXPECT_EQ(report.files.size(), static_cast<std::size_t>(options.files));
      read_snapshot(dir / "s", &of_one);
      EXPECT_EQ(report.mean_density_ratio, of_one.mean_density_ratio);
      EXPECT_EQ(report.notes, of_one.notes);
      EXPECT_EQ(report.files, of_one.files);
      EXPECT_EQ(report.counts, of_one.counts);
    }
    world.barrier();
    if (rank == 0) {
      for (const auto& entry : std::filesystem::directory_iterator(dir.path())) std::filesystem::remove(entry);
    }
    world.barrier();
  }
}

// The same particles, whoever has them.
TEST_F(SnapshotRanks, WriteSubsetsAlike) {
  const Snapshot all = make_snapshot(3000, false);
  const WriteOptions options{.selection = {.fraction = 0.2}};
  if (rank == 0) write_snapshot(dir / "one", all, make_provenance(), options);
  const auto files = write_snapshot(dir / "many", share(all, Shares::kGaps), make_provenance(), options, {}, world);
  world.barrier();
  EXPECT_TRUE(text_of(dir / "one") == text_of(files[0]));
  EXPECT_NEAR(static_cast<double>(count_particles(files[0], world)), 600, 5 * std::sqrt(600));
}

// Types of particles that lie across the ranks' shares, and notes that only some ranks have reason to make.
TEST_F(SnapshotRanks, ReadSeveralTypesOfParticles) {
  const Snapshot all = make_snapshot(30, false);
  if (rank == 0) {
    write_snapshot(dir / "s.hdf5", all, {});
    H5Id file = opened(dir / "s.hdf5");
    H5Id header = open_group(file, "Header");
    H5Adelete(header, "NumPart_ThisFile");
    const std::uint32_t counts[6] = {0, 30, 0, 7, 0, 0};
    write_attribute(header, "NumPart_ThisFile", counts, 6);
    H5Id group = create_group(file, "PartType3");
    for (const char* name : {"Coordinates", "Velocities", "Masses"}) {
      const std::size_t columns = name[0] == 'M' ? 1 : 3;
      H5Id dataset = create_dataset(group, name, H5T_IEEE_F64LE, 7, columns, 0);
      std::vector<double> values;
      for (int i = 0; i < 21; ++i) values.push_back(0.25 + i);
      write_rows(dataset, 0, 7, H5T_NATIVE_DOUBLE, values.data());
    }
  }
  world.barrier();
  ReadReport report, of_one;
  const Snapshot own = read_snapshot(dir / "s.hdf5", &report, world), whole = read_snapshot(dir / "s.hdf5", &of_one);
  expect_shares_of(whole, own, world);
  EXPECT_EQ(whole.ids[35], 36u);
  EXPECT_EQ(report.notes, of_one.notes);
  EXPECT_GE(report.notes.size(), 1u);
}

TEST_F(SnapshotRanks, FindTheSameFaultsAsOneRank) {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  using Spoil = std::function<void(Snapshot&)>;
  const std::vector<std::pair<const char*, Spoil>> faults{
      {"particle 6 (id 25) has a position that is not a number (", [&](Snapshot& s) { s.positions[6][1] = nan; }},
      {"particle 40 (id 127) has a velocity that is not a number (",
       [&](Snapshot& s) { s.velocities[40][1] = nan, s.velocities[900][0] = std::numeric_limits<float>::infinity(); }},
      {"has the mass 0 (2 such particles", [](Snapshot& s) { s.masses[4] = s.masses[999] = 0; }},
      {"particle 5 (id 22) has the mass -1 (", [](Snapshot& s) { s.masses[5] = -1; }},
      {"particle 5 (id 22) has the mass nan (", [&](Snapshot& s) { s.masses[5] = nan; }},
      {"particle 501 (id 1510) lies outside the box", [](Snapshot& s) { s.positions[501][2] = -26; }},
      {"holds no particles", [](Snapshot& s) { s = make_snapshot(0); }}};
  for (const auto& [text, spoil] : faults) {
    Snapshot all = make_snapshot(1000, false);
    spoil(all);
    write_snapshot(dir / "s", share(all, Shares::kEven), {}, {.overwrite = true}, {}, world);
    const std::string found = error(dir / "s", world);
    EXPECT_EQ(found, error(dir / "s", Communicator::self()));
    expect_contains(found, {text});
    world.barrier();
  }
  EXPECT_EQ(error(dir / "none", world), error(dir / "none", Communicator::self()));
}

TEST_F(SnapshotRanks, RepairAndWarnAsOneRank) {
  Snapshot all = make_snapshot(1000, false);
  all.positions[990] = all.positions[10], all.positions[995] = all.positions[700];
  all.positions[501][2] = -1, all.positions[20][0] = -3;
  all.ids[900] = all.ids[901] = all.ids[3];
  write_snapshot(dir / "s", share(all, Shares::kEven), {}, {}, {}, world);
  ReadReport report, of_one;
  const Snapshot own = read_snapshot(dir / "s", &report, world), whole = read_snapshot(dir / "s", &of_one);
  EXPECT_EQ(own.positions, even_share(whole, world).positions);
  EXPECT_EQ(whole.positions[501][2], 49);
  EXPECT_EQ(report.notes, of_one.notes);
  ASSERT_EQ(report.notes.size(), 3u);
  expect_contains(report.notes[0], {"Warning: 2 particles outside", "id 67", "by up to 3"});
  expect_contains(report.notes[1], {"Warning: 4 particles share their point", "ids 37 and 2977"});
  expect_contains(report.notes[2], {"Warning: 3 particles share their id", "id 16;"});
}

// What only one rank gets wrong stops all.
TEST_F(SnapshotRanks, FailToWriteTogether) {
  Snapshot own = share(make_snapshot(100), Shares::kEven);
  if (rank == size - 1) own.ids.push_back(1);
  expect_error([&] { write_snapshot(dir / "s", own, {}, {}, {}, world); }, {"differ in length"});
  own.ids.resize(own.size());
  expect_error([&] { write_snapshot(dir / "no/s", own, {}, {}, {}, world); }, {"make the directory"});
  if (rank == size - 1) own.ids.back() = std::uint64_t{1} << 32;
  expect_error([&] { write_snapshot(dir / "s", own, {}, {.id_bits = 32}, {}, world); },
               {"the id 4294967296 does not fit"});
  EXPECT_EQ(dir.entries(), 0u);
}

// A disk that fills up, or fails for one of the ranks, gives all ranks one Error and leaves nothing behind.

class FullDiskRanks : public InSharedDir {
 protected:
  const Snapshot all = make_snapshot(100000);
  const Snapshot own = even_share(all, world);
  const std::vector<WriteOptions> kinds{{},
                                        {.deflate = 1},
                                        {.files = 2},
                                        {.format = SnapshotFormat::kGadgetBinary1},
                                        {.format = SnapshotFormat::kGadgetBinary2, .files = 2}};

  // The message, which is the same on all ranks.
  std::string write(const WriteOptions& options) const {
    const std::string text = error_of([&] { write_snapshot(dir / "s", own, {}, options, {}, world); });
    for (const std::string& other : gather_texts(world, text)) EXPECT_EQ(text, other);
    EXPECT_TRUE(text.empty() || dir.entries() == 0);
    world.barrier();
    return text;
  }
};

TEST_F(FullDiskRanks, FailTogether) {
  std::optional<SmallDisk> disk;
  if (world.rank() == 0) disk.emplace(dir.path());
  if (broadcast_text(world, disk && *disk ? "yes" : "") != "yes") {
    GTEST_SKIP() << "mounting a small file system needs root; OneRankMayNotWrite covers the same path";
  }
  for (const auto& options : kinds)
    expect_contains(write(options), {"cannot write", (dir / "s").c_str(), "No space left on device", "free space"});
}

TEST_F(FullDiskRanks, OneRankMayNotWrite) {
  for (const int rank : {0, world.size() - 1}) {
    for (const auto& options : kinds) {
      if (options.deflate > 0 && rank > 0) continue;  // rank 0 writes for all
      const SmallFiles small(200000, world.rank() == rank);
      expect_contains(write(options), {"cannot write", (dir / "s").c_str(), "(File too large)", "raise the limit"});
    }
  }
  EXPECT_EQ(write({}), "");
}

}  // namespace
}  // namespace maki
