#include "host/fft/pencil_mesh.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/domain/multisection.hpp"
#include "host/fft/particle_brick.hpp"
#include "host/fft/pencil_fft.hpp"
#include "kernels/device/blocked_fft.hpp"
#include "kernels/device/device.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/mesh/mesh_solver.cuh"
#include "kernels/mesh/modes.cuh"

namespace maki {

// The counts of a mesh shared with other sites: particles are counted in the lines of the pencils, the counts go to the
// other sites, and the sums with theirs become masses.
class SharedCounts {
 public:
  // `box`: this rank's pencils. Both objects outlive this one.
  SharedCounts(ParticleBrick& brick, const MeshBox& box, bool interlaced, OutsideMasses& outside);

  // ParticleBrick::assign() in two halves, collective: give() sends this site's counts, take() gets the sums over sites
  // and converts them.
  void give(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit);
  void take(const Stream& stream, const MassUnit& unit, float* mesh, float* shifted);
  bool given() const { return given_; }  // counts were given and not taken yet

 private:
  int meshes() const { return interlaced_ ? 2 : 1; }
  std::size_t bytes_of_mesh() const { return box_.size() * sizeof(std::uint64_t); }
  DeviceBuffer<std::uint64_t>& on_device(int which) { return counts_[on_host_ && which == 1 ? 1 : 0]; }
  std::uint64_t* on_host(int which) {
    return on_host_ ? on_device(which).data()
                    : reinterpret_cast<std::uint64_t*>(host_[static_cast<std::size_t>(which)].data());
  }

  ParticleBrick& brick_;
  MeshBox box_;
  bool interlaced_;
  OutsideMasses& outside_;
  bool on_host_;                                       // device memory is host memory
  std::array<DeviceBuffer<std::uint64_t>, 2> counts_;  // the second only if device memory is host memory
  std::array<PinnedBuffer, 2> host_;                   // if it is not
  std::array<bool, 2> zero_{};                         // whether all counts of the mesh are zero
  bool given_ = false;
};

SharedCounts::SharedCounts(ParticleBrick& brick, const MeshBox& box, bool interlaced, OutsideMasses& outside)
    : brick_(brick), box_(box), interlaced_(interlaced), outside_(outside),
      on_host_(std::string(backend_name()) == "cpu"), counts_{DeviceBuffer<std::uint64_t>("mesh.shared"),
                                                              DeviceBuffer<std::uint64_t>("mesh.shared_shifted")} {}

void SharedCounts::give(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit) {
  brick_.take(stream, particles, n, unit);
  for (int which = 0; which < meshes(); ++which) {
    DeviceBuffer<std::uint64_t>& counts = on_device(which);
    counts.resize(box_.size());
    brick_.count(stream, which == 1, counts.data(), std::exchange(zero_[static_cast<std::size_t>(which)], false));
    if (on_host_) continue;
    PinnedBuffer& host = host_[static_cast<std::size_t>(which)];
    host.reserve(bytes_of_mesh());
    queue_copy_to_host(stream, host.data(), counts.data(), bytes_of_mesh());
  }
  stream.synchronize();
  outside_.start_sum(box_, unit, meshes(), on_host(0), interlaced_ ? on_host(1) : nullptr);
  given_ = true;
}

void SharedCounts::take(const Stream& stream, const MassUnit& unit, float* mesh, float* shifted) {
  given_ = false;
  outside_.finish_sum(box_, unit, meshes(), on_host(0), interlaced_ ? on_host(1) : nullptr);
  for (int which = 0; which < meshes(); ++which) {
    std::uint64_t* counts = on_device(which).data();
    if (!on_host_) queue_copy_to_device(stream, counts, on_host(which), bytes_of_mesh());
    zero_[static_cast<std::size_t>(which)] = brick_.to_masses(stream, unit, counts, which == 1 ? shifted : mesh);
  }
}

namespace {

// The wave numbers n = first ... end - 1 (n above m/2 means n - m), as absolute values.
PencilRange without_signs(const PencilRange& waves, int m) {
  const auto folded = [m](int n) { return n <= m / 2 ? n : m - n; };
  if (waves.count() == 0) return {};
  const int a = folded(waves.first), b = folded(waves.end - 1);
  const bool turns = waves.first <= m / 2 && waves.end > m / 2;
  return {std::min(a, b), (turns ? m / 2 : std::max(a, b)) + 1};
}

}  // namespace

class PencilStorage : public MeshStorage {
 public:
  PencilStorage(const Communicator& communicator, const MeshOptions& o)
      : communicator_(communicator), cells_(o.cells), cloud_(o.assignment),
        interlaced_(o.interlacing != Interlacing::kNone), fft_(communicator, o.cells),
        brick_(communicator, fft_.layout(), fft_.real_row(), o.assignment, interlaced_) {
    const PencilBox held = fft_.modes();
    const PencilRange y = without_signs(held.along[1], cells_), z = held.along[2];
    modes_ = {{held.along[1].first, z.first, held.along[1].count(), z.count()},
              static_cast<int>(fft_.mode_row() / 2),
              true,
              y.first,
              z.first,
              z.count()};
    lines_ = {{y.first, z.first}, {y.end, z.end}};
    const bool fits = BlockedFft::lines(cells_) == static_cast<std::size_t>(cells_);  // no rows for modes alone
    if (communicator.size() == 1 && std::string(backend_name()) == "cpu" && fits) blocked_.emplace(cells_);
  }

  std::size_t size() const override { return fft_.size(); }
  bool any(bool asks) const override { return largest_of(communicator_, std::uint64_t{asks}) > 0; }
  void add_over_ranks(const Stream& stream, DeviceBuffer<std::uint64_t>& values) const override {
    if (communicator_.size() == 1) return;
    std::vector<std::uint64_t> sums = values.download(stream);
    communicator_.sum(sums);
    values.upload(stream, sums);
  }

  // Lines of modes are [ky][kz][kx].
  ModeBlock modes() const override { return modes_; }
  int mode_axis(int axis) const override { return (axis + 2) % 3; }
  std::vector<float> influence(const MeshOptions& options, const ForceLaw& law, Influence kind) const override {
    return influence_function(options, law, kind, lines_);
  }

  void assign(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit, float* mesh,
              float* shifted) override {
    if (!shared_) return brick_.assign(stream, particles, n, unit, mesh, shifted);
    begin_assign(stream, particles, n, unit);
    shared_->take(stream, unit, mesh, shifted);
  }
  void begin_assign(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit) {
    if (shared_ && !shared_->given()) shared_->give(stream, particles, n, unit);
  }
  void set_outside(OutsideMasses* outside) {
    shared_.reset();
    if (!outside) return;
    MeshBox box{cells_, {}, {}};
    const PencilBox held = fft_.cells();
    for (std::size_t axis = 0; axis < 3 && held.cells() > 0; ++axis) {
      box.origin[axis] = held.along[axis].first;
      box.extent[axis] = held.along[axis].count();
    }
    if (fft_.layout().ranks() == 1) brick_.hold_all();
    shared_.emplace(brick_, box, interlaced_, *outside);
  }
  bool solve(const Stream& stream, const InfluencePass& pass, PhaseClock& clock) override {
    if (blocked_) solve_in_blocks(stream, *blocked_, pass, modes_, brick_.planes(), clock);
    return blocked_.has_value();
  }
  void forward(const Stream& stream, float* mesh) override { fft_.forward(stream, mesh); }
  void backward(const Stream& stream, float* mesh) override { fft_.backward(stream, mesh); }

  void interpolate(const Stream& stream, const float* mesh, const Target& target,
                   const InterpolationOutput& out) override {
    maki::interpolate(stream, cloud_, around(stream, mesh, target), target.particles, target.n, out);
  }

 private:
  // A view of the cells that the target's clouds touch.
  MeshView around(const Stream& stream, const float* mesh, const Target& target) {
    if (!brick_.holds_all()) return {brick_.fetch(stream, mesh), brick_.box(), target.shifted};
    MeshView view(mesh, MeshBox::whole(cells_), target.shifted);
    view.row = fft_.real_row();
    return view;
  }

  Communicator communicator_;
  int cells_;
  Assignment cloud_;
  bool interlaced_;
  PencilFft fft_;
  std::optional<BlockedFft> blocked_;
  ParticleBrick brick_;
  std::optional<SharedCounts> shared_;
  ModeBlock modes_;
  OctantLines lines_;
};

double pencil_mesh_bytes(const MeshOptions& options, double particles, int ranks, int sites, double uneven) {
  constexpr double edge = 8;  // cells by which a brick is wider than its particles' box: clouds, and room to move
  const int everywhere = ranks * sites;
  const double m = options.cells, cells = m * m * (m + 2);
  const double side = std::min(m, std::cbrt(uneven * m * m * m / everywhere) + edge);  // of a brick
  const MeshBytes bytes = mesh_bytes(options);
  const double transposes = ranks > 1 ? bytes.meshes : 0, counts = everywhere > 1 ? sizeof(std::uint64_t) * cells : 0;
  return (bytes.meshes + bytes.tables + transposes + counts) / ranks + 2 * sizeof(std::uint64_t) * side * side * side +
         counter_bytes(side * side, uneven * particles / everywhere);
}

double shared_counts_bytes(const MeshOptions& options) {
  const int meshes = options.interlacing == Interlacing::kNone ? 1 : 2;
  return meshes * sizeof(std::uint64_t) * std::pow(static_cast<double>(options.cells), 3);
}

PencilMesh::PencilMesh(const Communicator& communicator, const MeshOptions& options, const ForceLaw& law)
    : PencilMesh(options, law, (check_mesh_options(options, law), new PencilStorage(communicator, options))) {}
PencilMesh::PencilMesh(const MeshOptions& options, const ForceLaw& law, PencilStorage* storage)
    : ParticleMesh(options, law, std::unique_ptr<MeshStorage>(storage)), storage_(*storage) {}

void PencilMesh::set_outside(OutsideMasses* outside) { storage_.set_outside(outside); }

void PencilMesh::begin(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit) {
  storage_.begin_assign(stream, particles, n, unit);
}

}  // namespace maki
