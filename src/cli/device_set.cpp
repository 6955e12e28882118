#include "src/cli/device_set.hpp"

#include "kernels/device/device.hpp"
#include "src/cli/build.hpp"
#include "src/io/snapshot_io.hpp"

namespace maki {

namespace {

// Before there is a stream.
const std::string& on_first_device(const std::string& path) {
  select_device(0, 0);
  return path;
}

}  // namespace

LoadedSet::LoadedSet(const std::string& path) : path_(on_first_device(path)) {
  const Snapshot snapshot = read_snapshot(path);
  header_ = snapshot.header;
  IsolatedBox box{header_.box_size, {}};
  if (header_.comoving) {
    box.centre.fill(box.side / 2);
  } else {
    box = isolated_box(snapshot);
  }
  frame_ = make_frame(header_, box.side, box.centre);
  load_particles(stream_, snapshot, frame_, particles_);
}

Provenance LoadedSet::provenance() const { return maki::provenance("# of " + path_ + "\n", device_text()); }

}  // namespace maki
