#include "host/domain/migrate.hpp"

#include <thrust/binary_search.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/device/thrust.cuh"

namespace maki {

namespace {

constexpr std::size_t kBlockAlignment = 16;  // alignment of SourceParticle, the first array of a block

struct FindOwner {
  const SourceParticle* source;
  DomainView view;
  std::uint32_t self;
  std::uint32_t* owner;
  std::uint32_t* leaves;
  MAKI_HD void operator()(std::size_t i) const {
    const SourceParticle p = source[i];
    owner[i] = view.rank_of(p.x, p.y, p.z);
    leaves[i] = owner[i] == self ? 0 : 1;
  }
};

struct Invert {
  std::uint32_t* flags;
  MAKI_HD void operator()(std::size_t i) const { flags[i] = 1 - flags[i]; }
};

struct OwnerAsKey {
  const std::uint32_t* owner;
  const std::uint32_t* index;
  std::uint64_t* keys;
  MAKI_HD void operator()(std::size_t k) const { keys[k] = owner[index[k]]; }
};

// The place of element j of an array, in a block with `before` bytes a particle before the array.
struct PackedArrayView {
  const std::uint64_t* first;
  const std::uint64_t* begin;
  std::uint32_t ranks;
  std::uint64_t before;

  MAKI_HD std::uint64_t byte_of(std::uint64_t j, std::uint64_t element_bytes) const {
    const std::uint32_t r = interval_of(first, ranks, j);
    return begin[r] + before * (first[r + 1] - first[r]) + (j - first[r]) * element_bytes;
  }
};

template <class T>
struct Pack {
  const T* from;
  const std::uint32_t* index;
  PackedArrayView array;
  std::byte* packed;
  MAKI_HD void operator()(std::size_t j) const {
    *reinterpret_cast<T*>(packed + array.byte_of(j, sizeof(T))) = from[index[j]];
  }
};

template <class T>
struct Unpack {
  const std::byte* packed;
  PackedArrayView array;
  T* to;
  MAKI_HD void operator()(std::size_t j) const {
    to[j] = *reinterpret_cast<const T*>(packed + array.byte_of(j, sizeof(T)));
  }
};

template <class T>
struct Gather {
  const T* from;
  const std::uint32_t* index;
  T* to;
  MAKI_HD void operator()(std::size_t k) const { to[k] = from[index[k]]; }
};

// f(array, bytes a particle before it) for all arrays of a set, in block order; returns the bytes of a particle.
template <class F>
std::size_t for_each_array(DeviceBuffer<SourceParticle>& sources, ExtraArrays, F f) {
  f(sources, 0);
  return sizeof(SourceParticle);
}
template <class F>
std::size_t for_each_array(Particles& particles, ExtraArrays extra, F f) {
  std::size_t before = 0;
  const auto next = [&](auto& array) {
    f(array, before);
    before += sizeof *array.data();
  };
  next(particles.source);
  next(particles.id);
  next(particles.momentum.x);
  next(particles.momentum.y);
  next(particles.momentum.z);
  for (DeviceBuffer<float>* array : extra) next(*array);
  next(particles.remainder);
  return before;
}

// The places on the device.
struct DevicePlaces {
  DeviceBuffer<std::uint64_t> first{"migrate.places"}, begin{"migrate.places"};

  DevicePlaces(const Stream& stream, const BlockPlaces& places) {
    first.upload(stream, places.first);
    begin.upload(stream, places.begin);
  }
  PackedArrayView view(std::size_t before) const {
    return {first.data(), begin.data(), static_cast<std::uint32_t>(first.size() - 1), before};
  }
};

template <class Set>
DeviceBuffer<std::byte> pack_set(const Stream& stream, Set& particles, ExtraArrays extra,
                                 const DeviceBuffer<std::uint32_t>& index, const BlockPlaces& places) {
  DeviceBuffer<std::byte> packed("migrate.packed", places.size());
  const DevicePlaces on_device(stream, places);
  for_each_array(particles, extra, [&]<class T>(DeviceBuffer<T>& array, std::size_t before) {
    launch(stream, "pack", places.particles(),
           Pack<T>{array.data(), index.data(), on_device.view(before), packed.data()});
  });
  return packed;
}

template <class Set>
void keep_and_append_set(const Stream& stream, Set& particles, ExtraArrays extra,
                         const DeviceBuffer<std::uint32_t>* staying, const DeviceBuffer<std::byte>& packed,
                         const BlockPlaces& places) {
  const std::size_t kept = staying ? staying->size() : particles.size();
  const DevicePlaces on_device(stream, places);
  // One scratch array at a time, so that the peak memory stays low.
  for_each_array(particles, extra, [&]<class T>(DeviceBuffer<T>& array, std::size_t before) {
    DeviceBuffer<T> moved(array.name(), kept + places.particles());
    if (staying)
      launch(stream, "keep", kept, Gather<T>{array.data(), staying->data(), moved.data()});
    else
      copy_on_device(stream, moved.data(), array.data(), kept * sizeof(T));
    launch(stream, "unpack", places.particles(), Unpack<T>{packed.data(), on_device.view(before), moved.data() + kept});
    array.swap(moved);
  });
}

// Exchanges blocks through host memory. The packed blocks are freed here.
DeviceBuffer<std::byte> exchange_blocks(const Stream& stream, const Communicator& communicator,
                                        DeviceBuffer<std::byte> packed, const BlockPlaces& sent,
                                        const BlockPlaces& received) {
  const std::vector<std::byte> from = packed.download(stream);
  packed.release();
  std::vector<std::byte> to(received.size());
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  for (std::size_t r = 0; r < static_cast<std::size_t>(communicator.size()); ++r) {
    if (sent.count(r) > 0) out.push_back({static_cast<int>(r), from.data() + sent.begin[r], sent.bytes(r)});
    if (received.count(r) > 0) in.push_back({static_cast<int>(r), to.data() + received.begin[r], received.bytes(r)});
  }
  communicator.exchange(out, in);
  DeviceBuffer<std::byte> arrived("migrate.packed");
  arrived.upload(stream, to);
  return arrived;
}

template <class Set>
Migration migrate_set(const Stream& stream, const Communicator& communicator, const Domains& domains, Set& particles,
                      const DeviceBuffer<SourceParticle>& sources, ExtraArrays extra) {
  if (domains.count() != communicator.size()) throw std::invalid_argument("migrate: as many domains as ranks");
  for (const DeviceBuffer<float>* array : extra)
    if (array->size() != particles.size()) throw std::invalid_argument("migrate: an extra array differs in length");
  DeviceBuffer<std::uint32_t> starts("migrate.domains");
  starts.upload(stream, domains.starts().data(), domains.starts().size());
  const Leavers leavers =
      select_leavers(stream, sources, domains.view_of(starts.data()), static_cast<std::uint32_t>(communicator.rank()));
  const std::size_t bytes = for_each_array(particles, extra, [](auto&, std::size_t) {});
  const BlockPlaces sent(leavers.counts, bytes), received(communicator.exchange_sizes(leavers.counts), bytes);
  const std::uint64_t kept = particles.size() - sent.particles();
  require_rank_holds(kept + received.particles());
  Migration migration{sent.particles(), received.particles(), 0, 0};
  for (std::size_t r = 0; r < leavers.counts.size(); ++r) {
    migration.messages += sent.count(r) > 0;
    migration.bytes += sent.bytes(r);
  }
  if (migration.sent == 0 && migration.received == 0) return migration;
  const DeviceBuffer<std::byte> arrived =
      exchange_blocks(stream, communicator, pack_set(stream, particles, extra, leavers.index, sent), sent, received);
  keep_and_append_set(stream, particles, extra, leavers.kept(), arrived, received);
  return migration;
}

}  // namespace

BlockPlaces::BlockPlaces(const std::vector<std::uint64_t>& counts, std::size_t bytes)
    : first(1, 0), begin(1, 0), particle_bytes(bytes) {
  for (const std::uint64_t n : counts) {
    first.push_back(first.back() + n);
    const std::uint64_t end = begin.back() + n * particle_bytes;
    begin.push_back((end + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment);
  }
}

std::size_t packed_bytes(std::size_t extra_arrays) {
  Particles none;
  return for_each_array(none, {}, [](auto&, std::size_t) {}) + extra_arrays * sizeof(float);
}

Leavers select_leavers(const Stream& stream, const DeviceBuffer<SourceParticle>& sources, const DomainView& view,
                       std::uint32_t self) {
  const std::size_t n = sources.size(), ranks = std::size_t{view.nx} * view.ny * view.nz;
  Leavers leavers;
  leavers.counts.assign(ranks, 0);
  if (n == 0) return leavers;
  DeviceBuffer<std::uint32_t> owner("migrate.owner", n), flags("migrate.flags", n);
  launch(stream, "find_owner", n, FindOwner{sources.data(), view, self, owner.data(), flags.data()});
  const std::uint32_t leaving = select_flagged(stream, flags.data(), n, leavers.index);
  if (leaving == 0) return leavers;
  launch(stream, "invert_flags", n, Invert{flags.data()});
  select_flagged(stream, flags.data(), n, leavers.staying);

  DeviceBuffer<std::uint64_t> keys("migrate.keys", leaving);
  DeviceBuffer<std::uint32_t> below("migrate.counts", ranks + 1);
  launch(stream, "owner_keys", leaving, OwnerAsKey{owner.data(), leavers.index.data(), keys.data()});
  sort_by_key(stream, keys, leavers.index);
  PoolAllocator allocator{"migrate.scratch"};
  const thrust::counting_iterator<std::uint64_t> first(0);
  thrust::lower_bound(thrust_policy(stream, allocator), keys.data(), keys.data() + leaving, first,
                      first + static_cast<std::ptrdiff_t>(ranks + 1), below.data());
  const std::vector<std::uint32_t> sums = below.download(stream);
  for (std::size_t r = 0; r < ranks; ++r) leavers.counts[r] = sums[r + 1] - sums[r];
  return leavers;
}

DeviceBuffer<std::byte> pack(const Stream& stream, Particles& particles, ExtraArrays extra,
                             const DeviceBuffer<std::uint32_t>& index, const BlockPlaces& places) {
  return pack_set(stream, particles, extra, index, places);
}

void keep_and_append(const Stream& stream, Particles& particles, ExtraArrays extra,
                     const DeviceBuffer<std::uint32_t>* staying, const DeviceBuffer<std::byte>& packed,
                     const BlockPlaces& places) {
  keep_and_append_set(stream, particles, extra, staying, packed, places);
}

Migration migrate(const Stream& stream, const Communicator& communicator, const Domains& domains, Particles& particles,
                  std::span<DeviceBuffer<float>* const> extra) {
  return migrate_set(stream, communicator, domains, particles, particles.source, extra);
}
Migration migrate(const Stream& stream, const Communicator& communicator, const Domains& domains,
                  DeviceBuffer<SourceParticle>& sources) {
  return migrate_set(stream, communicator, domains, sources, sources, {});
}

}  // namespace maki
