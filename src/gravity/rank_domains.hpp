// The domains of the ranks: cut anew at rebuilds by the measured cost of particles, which then move to their ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "host/comm/communicator.hpp"
#include "host/domain/migrate.hpp"
#include "host/domain/sampling.hpp"

namespace maki {

class RankDomains {
 public:
  explicit RankDomains(const Communicator& ranks) : ranks_(ranks) {}

  // New domains where there are several ranks; one rank keeps all. `costs` is called for the cost of each particle in
  // the present order (Costs); the first time, and where no rank has costs, all particles count alike. Collective, as
  // move().
  void cut(const Stream& stream, const Particles& particles, const std::function<Costs()>& costs);
  // Sends particles to their ranks. `carried` (null on all ranks or on none) has one entry for each particle and goes
  // with it.
  void move(const Stream& stream, Particles& particles, VectorArray* carried) const;

  // To be called where the box of an isolated set has doubled about its middle.
  void double_box() {
    if (domains_) domains_->double_box();
  }

 private:
  Communicator ranks_;
  std::optional<Domains> domains_;  // none before the first cut
  std::uint64_t updates_ = 0;
};

}  // namespace maki
