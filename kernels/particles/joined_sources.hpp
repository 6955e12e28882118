// Two sets of sources as one, in an order that depends on where the sources are and on nothing else.
#pragma once

#include <cstdint>

#include "kernels/device/buffer.hpp"
#include "kernels/particles/types.hpp"
#include "kernels/particles/vector_array.hpp"

namespace maki {

// Sources of this rank (the first `own`) and others, sorted by Morton key, and where keys are equal by the bits of the
// coordinates that a key leaves out. So a tree over them has the same cells with the same particles in the same order
// wherever it is built, as far as the particles are all there. (Sources at the very same place stand in the order in
// which they came. That shows where they differ in mass, where they part before the next join(), and where more than
// a group holds are at one place.)
//
// In bytes a source: 20, and 20 more while they are sorted, of which 8 stay until the keys are released.
class JoinedSources {
 public:
  // `own` in Morton order, as MortonSorter leaves them, others in any. Up to 2^32 - 2 in all, else throws Error.
  // Afterwards keys() are there until they are released.
  void join(const Stream& stream, const SourceParticle* own, std::size_t own_count, const SourceParticle* others,
            std::size_t other_count);
  // The same sources, as many as before and in the same order as then, where they are now: they stay where they stand.
  void refresh_own(const Stream& stream, const SourceParticle* own);
  void refresh_others(const Stream& stream, const SourceParticle* others);

  std::uint32_t size() const { return static_cast<std::uint32_t>(sources_.size()); }
  bool has_others() const { return size() > own_count_; }
  const SourceParticle* data() const { return sources_.data(); }
  const DeviceBuffer<std::uint64_t>& keys() const { return keys_; }
  void release_keys() { keys_.release(); }

  // before[i] = how many of the first i joined sources are own, i = 0 ... size().
  void count_own(const Stream& stream, DeviceBuffer<std::uint32_t>& before) const;
  // Values of the joined sources back to own ones: own[k] = joined[where source k stands].
  void own_values(const Stream& stream, const float* joined, float* own) const;
  void own_values(const Stream& stream, const ConstVectorView& joined, const VectorView& own) const;

 private:
  void sort_with_fine_keys(const Stream& stream, const SourceParticle* own, const SourceParticle* others);

  std::uint32_t own_count_ = 0;
  DeviceBuffer<SourceParticle> sources_{"ghosts.sources"};
  DeviceBuffer<std::uint32_t> order_{"ghosts.order"};  // which source stands here: own ones first, then others
  DeviceBuffer<std::uint64_t> keys_{"sort.keys"};
};

}  // namespace maki
