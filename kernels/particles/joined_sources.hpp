// Two sets of sources joined in an order that depends on the sources' positions alone.
#pragma once

#include <cstdint>

#include "kernels/device/buffer.hpp"
#include "kernels/particles/types.hpp"

namespace maki {

// Sources of this rank and ghosts (the `others`), sorted by Morton key, and among equal keys by the coordinate bits
// that a key leaves out. So wherever ranks hold all particles of a region, their trees have the same cells there, with
// the same particles in the same order. (Sources at the very same position keep their input order. Ranks may then
// differ where these have different masses, part before the next join(), or are more than a group holds.)
//
// Memory, bytes a source: 20, and 20 more during the sort, of which 8 stay until the keys are released.
class JoinedSources {
 public:
  // Joins `own`, in MortonSorter's order, and `others`, in any order. Throws Error for more than 2^32 - 2 in all.
  // keys() are valid until release_keys().
  void join(const Stream& stream, const SourceParticle* own, std::size_t own_count, const SourceParticle* others,
            std::size_t other_count);
  // Updates positions and masses of the sources of the last join(), given in the same number and order; the joined
  // order stays.
  void refresh_own(const Stream& stream, const SourceParticle* own);
  void refresh_others(const Stream& stream, const SourceParticle* others);

  std::uint32_t size() const { return static_cast<std::uint32_t>(sources_.size()); }
  bool has_others() const { return size() > own_count_; }
  const SourceParticle* data() const { return sources_.data(); }
  const DeviceBuffer<std::uint64_t>& keys() const { return keys_; }
  void release_keys() { keys_.release(); }

  // before[i] = number of own sources among the first i joined ones, i = 0 ... size().
  void count_own(const Stream& stream, DeviceBuffer<std::uint32_t>& before) const;
  // Copies values of the joined sources back to own ones: own[k] = joined[place of source k].
  void own_values(const Stream& stream, const float* joined, float* own) const;
  void own_values(const Stream& stream, const ConstVectorView& joined, const VectorView& own) const;

 private:
  void sort_with_fine_keys(const Stream& stream, const SourceParticle* own, const SourceParticle* others);

  std::uint32_t own_count_ = 0;
  DeviceBuffer<SourceParticle> sources_{"ghosts.sources"};
  DeviceBuffer<std::uint32_t> order_{"ghosts.order"};  // by joined source: its index in `own`, then `others`
  DeviceBuffer<std::uint64_t> keys_{"sort.keys"};
};

}  // namespace maki
