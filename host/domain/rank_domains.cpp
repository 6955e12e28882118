#include "host/domain/rank_domains.hpp"

#include <array>
#include <span>

#include "host/domain/migrate.hpp"

namespace maki {

void RankDomains::cut(const Stream& stream, const Particles& particles, const std::function<Costs()>& costs) {
  if (ranks_.size() == 1) return;
  const Samples samples = gather_samples(stream, ranks_, particles, costs(), updates_++);
  domains_ = domains_ ? multisect(samples.points, *domains_, Smoothing{})
                      : multisect(samples.points, choose_factors(ranks_.size()));
}

void RankDomains::move(const Stream& stream, Particles& particles, VectorArray* carried) const {
  if (!domains_) return;
  std::array<DeviceBuffer<float>*, 3> extra{};
  if (carried) extra = {&carried->x, &carried->y, &carried->z};
  migrate(stream, ranks_, *domains_, particles, std::span(extra.data(), carried ? 3 : 0));
}

}  // namespace maki
