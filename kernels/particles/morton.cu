#include "kernels/particles/morton.hpp"

#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"

namespace maki {
namespace {

struct MakeKeys {
  const SourceParticle* source;
  std::uint64_t* keys;
  std::uint32_t* index;
  MAKI_HD void operator()(std::size_t i) const {
    const SourceParticle p = source[i];
    keys[i] = morton_key(p.x, p.y, p.z);
    index[i] = static_cast<std::uint32_t>(i);
  }
};

template <class T>
struct Gather {
  const std::uint32_t* index;
  const T* from;
  T* to;
  MAKI_HD void operator()(std::size_t i) const { to[i] = from[index[i]]; }
};

// Through one scratch array at a time, so that the peak stays low.
template <class T>
void reorder(const Stream& stream, const DeviceBuffer<std::uint32_t>& index, DeviceBuffer<T>& array) {
  DeviceBuffer<T> sorted(array.name(), array.size());
  launch(stream, "reorder", array.size(), Gather<T>{index.data(), array.data(), sorted.data()});
  array.swap(sorted);
}

void reorder(const Stream& stream, const DeviceBuffer<std::uint32_t>& index, VectorArray& array) {
  reorder(stream, index, array.x);
  reorder(stream, index, array.y);
  reorder(stream, index, array.z);
}

}  // namespace

void MortonSorter::sort(const Stream& stream, Particles& particles, VectorArray* carried) {
  const std::size_t n = particles.size();
  keys_.resize(n);
  DeviceBuffer<std::uint32_t> index("sort.index", n);
  launch(stream, "morton_keys", n, MakeKeys{particles.source.data(), keys_.data(), index.data()});
  sort_by_key(stream, keys_, index);
  reorder(stream, index, particles.source);
  reorder(stream, index, particles.remainder);
  reorder(stream, index, particles.momentum);
  reorder(stream, index, particles.id);
  if (carried && carried->size() == n) reorder(stream, index, *carried);
}

}  // namespace maki
