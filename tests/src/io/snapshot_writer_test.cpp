// Snapshots written by a thread, beside what the caller does.
#include "src/io/snapshot_writer.hpp"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "kernels/error.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using test::expect_contains;
using test::make_snapshot;
using test::TempDir;

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
    const std::vector<std::string> names = writer.begin(dir / "s.hdf5", {source}, test::make_provenance(), options);
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

TEST(SnapshotWriter, TellsWhatTheThreadCouldNotDo) {
  const Snapshot set = make_snapshot(1000, false);
  for (const WriteOptions& options : kKinds) {
    TempDir dir;
    const auto source = std::make_shared<HeldSource>(set);
    source->fails = true;
    source->release();
    SnapshotWriter writer;
    writer.begin(dir / "s.hdf5", {source}, test::make_provenance(), options);
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
      writer.begin(dir / "s.hdf5", {source}, test::make_provenance(), options);
      source->release();
    }
    const bool whole = options.deflate == 0 && options.coordinates == CoordinateNumbers::kDouble;
    EXPECT_EQ(dir.entries(), whole ? static_cast<std::size_t>(options.files) : 0u);
  }
}

}  // namespace
}  // namespace maki
