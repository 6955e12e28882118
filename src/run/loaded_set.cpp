#include "src/run/loaded_set.hpp"

#include "host/comm/job.hpp"
#include "kernels/device/device.hpp"
#include "src/run/build.hpp"

namespace maki {

namespace {

// The device is chosen before a stream exists, and after world() has found this rank's share of its machine.
const std::string& on_usual_device(const std::string& origin) {
  select_device(usual_device(), usual_threads());
  return origin;
}

}  // namespace

LoadedSet::LoadedSet(const std::string& path, const Communicator& ranks)
    : place_(ranks), origin_(on_usual_device(path)) {
  load(read_snapshot(path, &report_, ranks));
}

LoadedSet::LoadedSet(const Snapshot& snapshot, const std::string& origin, const Communicator& ranks)
    : place_(ranks), origin_(on_usual_device(origin)) {
  load(snapshot);
}

void LoadedSet::load(const Snapshot& snapshot) {
  header_ = snapshot.header;
  IsolatedBox box{header_.box_size, {}};
  if (header_.comoving) {
    box.centre.fill(box.side / 2);
  } else {
    box = isolated_box(snapshot, place_.ranks);
  }
  frame_ = make_frame(header_, box.side, box.centre);
  load_particles(stream_, snapshot, frame_, particles_);
}

Provenance LoadedSet::provenance() const { return maki::provenance("# of " + origin_ + "\n", device_text()); }

}  // namespace maki
