#include "host/domain/migrate.hpp"

#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "host/domain/packing.hpp"
#include "kernels/error.hpp"

namespace maki {
namespace {

void check(const Communicator& communicator, const Domains& domains, const Particles& particles, ExtraArrays extra) {
  if (domains.count() != communicator.size()) throw std::invalid_argument("migrate: as many domains as ranks");
  for (const DeviceBuffer<float>* array : extra)
    if (array->size() != particles.size()) throw std::invalid_argument("migrate: an extra array differs in length");
}

Leavers find_leavers(const Stream& stream, const Communicator& communicator, const Domains& domains,
                     const Particles& particles) {
  DeviceBuffer<std::uint32_t> starts("migrate.domains");
  starts.upload(stream, domains.starts().data(), domains.starts().size());
  return select_leavers(stream, particles, domains.view_of(starts.data()),
                        static_cast<std::uint32_t>(communicator.rank()));
}

// Blocks out, blocks in, by way of host memory. The packed blocks end here.
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

}  // namespace

Migration migrate(const Stream& stream, const Communicator& communicator, const Domains& domains, Particles& particles,
                  std::span<DeviceBuffer<float>* const> extra) {
  check(communicator, domains, particles, extra);
  const Leavers leavers = find_leavers(stream, communicator, domains, particles);
  const BlockPlaces sent(leavers.counts, extra.size());
  const BlockPlaces received(communicator.exchange_sizes(leavers.counts), extra.size());
  const std::uint64_t kept = particles.size() - sent.particles();
  if (kept + received.particles() > std::numeric_limits<std::uint32_t>::max())
    throw Error("too many particles for rank " + std::to_string(communicator.rank()),
                std::to_string(kept + received.particles()) + ", and a rank holds less than 2^32", "start more ranks");

  Migration migration{sent.particles(), received.particles(), 0, 0};
  for (std::size_t r = 0; r < leavers.counts.size(); ++r) {
    migration.messages += sent.count(r) > 0;
    migration.bytes += sent.bytes(r);
  }
  if (migration.sent == 0 && migration.received == 0) return migration;
  const DeviceBuffer<std::byte> arrived =
      exchange_blocks(stream, communicator, pack(stream, particles, extra, leavers.index, sent), sent, received);
  keep_and_append(stream, particles, extra, leavers.kept(), arrived, received);
  return migration;
}

}  // namespace maki
