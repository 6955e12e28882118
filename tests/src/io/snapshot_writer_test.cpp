// Snapshots as runs write them: by a thread beside the steps, and each site a file of one set.
#include "src/io/snapshot_writer.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "kernels/error.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/io/snapshot_io.hpp"
#include "tests/sites/replayed_sites.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using namespace test;

// Gives its particles to other threads only when it is told to.
class HeldSource : public SnapshotSource {
 public:
  explicit HeldSource(const Snapshot& set) : SnapshotSource(set) {}
  float mass(std::size_t i) const override {
    if (std::this_thread::get_id() != caller_) released_.wait();
    if (fails && std::this_thread::get_id() != caller_) throw Error("the source has run dry");
    return SnapshotSource::mass(i);
  }
  void release() { release_.set_value(); }
  bool fails = false;

 private:
  std::thread::id caller_ = std::this_thread::get_id();
  std::promise<void> release_;
  std::shared_future<void> released_ = release_.get_future().share();
};

const WriteOptions kKinds[] = {{}, {.files = 3}, {.deflate = 1}, {.coordinates = CoordinateNumbers::kFixed32}};

TEST(SnapshotWriter, WritesBesideItsCaller) {
  const Snapshot set = make_snapshot(1000, false);
  for (const WriteOptions& options : kKinds) {
    TempDir dir;
    const auto source = std::make_shared<HeldSource>(set);
    SnapshotWriter writer;
    const std::vector<std::string> names = writer.begin(dir / "s.hdf5", {source}, make_provenance(), options);
    EXPECT_TRUE(writer.busy());
    EXPECT_FALSE(writer.look());
    for (const std::string& name : names) EXPECT_FALSE(std::filesystem::exists(name));
    source->release();
    std::optional<SnapshotOutcome> outcome;
    while (!outcome) outcome = writer.look();
    EXPECT_EQ(outcome->problem, "");
    EXPECT_EQ(outcome->files, names);
    EXPECT_FALSE(writer.busy());
    EXPECT_EQ(source.use_count(), 1);
    EXPECT_EQ(dir.entries(), names.size());
    EXPECT_EQ(read_snapshot(names[0]).ids, set.ids);
  }
}

// Chunks go to HDF5 in turns: at least one in each look, and more within the seconds given.
TEST(SnapshotWriter, PassesChunksForTheSecondsGiven) {
  TempDir dir;
  const Snapshot set = make_snapshot(1000, false);
  const auto source = std::make_shared<HeldSource>(set);
  source->release();
  SnapshotWriter writer;
  writer.begin(dir / "s.hdf5", {source}, make_provenance(), {.deflate = 1});
  EXPECT_EQ(writer.seconds_left(), 0);  // none is known yet
  while (writer.seconds_left() == 0) ASSERT_FALSE(writer.look());
  ASSERT_FALSE(writer.look(1e9));
  EXPECT_EQ(writer.seconds_left(), 0);
  EXPECT_EQ(writer.wait().problem, "");
}

TEST(SnapshotWriter, TellsWhatTheThreadCouldNotDo) {
  const Snapshot set = make_snapshot(1000, false);
  for (const WriteOptions& options : kKinds) {
    TempDir dir;
    const auto source = std::make_shared<HeldSource>(set);
    source->fails = true;
    source->release();
    SnapshotWriter writer;
    writer.begin(dir / "s.hdf5", {source}, make_provenance(), options);
    const SnapshotOutcome outcome = writer.wait();
    expect_contains(outcome.problem, {"cannot write", (dir / "s.").c_str(), "the source has run dry"});
    EXPECT_EQ(dir.entries(), 0u);
    EXPECT_FALSE(writer.busy());
  }
}

// One that goes waits for its thread. What has not got its name is removed.
TEST(SnapshotWriter, LeavesNoHalfFile) {
  const Snapshot set = make_snapshot(1000, false);
  for (const WriteOptions& options : kKinds) {
    TempDir dir;
    {
      const auto source = std::make_shared<HeldSource>(set);
      SnapshotWriter writer;
      writer.begin(dir / "s.hdf5", {source}, make_provenance(), options);
      source->release();
    }
    const bool whole = options.deflate == 0 && options.coordinates == CoordinateNumbers::kDouble;
    EXPECT_EQ(dir.entries(), whole ? static_cast<std::size_t>(options.files) : 0u);
  }
}

// Snapshots of a run over sites: each site's file of one set, which readers take for one snapshot.

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

TEST(SitesSnapshot, IsOneSetOfAFileASite) {
  for (const auto& ends : kEnds) {
    for (const bool equal_masses : {true, false}) {
      for (const int deflate : {0, 4}) {
        SCOPED_TRACE(testing::Message() << ends.size() << " sites, deflate " << deflate);
        TempDir dir;
        const Snapshot whole = make_snapshot(1000, equal_masses);
        const auto count = static_cast<int>(ends.size());
        std::vector<std::string> names(ends.size());
        replay_sites(count, [&](sites::Sites& sites) {
          const auto me = static_cast<std::size_t>(sites.me());
          WriteOptions options;
          options.deflate = deflate;
          names[me] = write_snapshot(dir / "snapshot_003.hdf5", rows_of(whole, me == 0 ? 0 : ends[me - 1], ends[me]),
                                     make_provenance(), options, {}, {Communicator::self(), sites})
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
          expect_contains(text_of(describe_file(name)), {"1000"});
        }
      }
    }
  }
}

// A thread of a program in Python reads while another is in HDF5.
TEST(Hdf5Turn, KeepsOtherThreadsOut) {
  TempDir dir;
  const Snapshot set = make_snapshot(100);
  const auto write = [&](const char* name) { write_snapshot(dir / name, set, make_provenance()); };
  write("s.hdf5");
  std::optional<Hdf5Turn> turn(std::in_place);
  std::vector<std::future<void>> others;
  others.push_back(std::async(std::launch::async, [&] { expect_same(read_snapshot(dir / "s.hdf5"), set); }));
  others.push_back(std::async(std::launch::async, [&] { EXPECT_FALSE(describe_file(dir / "s.hdf5").empty()); }));
  others.push_back(std::async(std::launch::async, [&] { write("t.hdf5"); }));
  for (const auto& other : others)
    EXPECT_EQ(other.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  write("u.hdf5");
  turn.reset();
  for (auto& other : others) other.get();
  expect_same(read_snapshot(dir / "t.hdf5"), set);
}

// Masses and ids of another site decide with the own ones how they are written.
TEST(SitesSnapshot, HasOneKindOfMassesAndIds) {
  TempDir dir;
  Snapshot whole = make_snapshot(100);
  whole.masses.back() *= 2;
  whole.ids.back() = std::uint64_t{1} << 40;
  replay_sites(2, [&](sites::Sites& sites) {
    const std::size_t begin = sites.me() == 0 ? 0 : 60, end = sites.me() == 0 ? 60 : 100;
    write_snapshot(dir / "s.hdf5", rows_of(whole, begin, end), make_provenance(), {}, {},
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
