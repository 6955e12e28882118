// Which rank owns which part of the box: cut anew at rebuilds by what the particles cost, and particles moved there.
#pragma once

#include <cstdint>
#include <optional>

#include "host/comm/communicator.hpp"
#include "host/domain/migrate.hpp"
#include "host/domain/sampling.hpp"

namespace maki {

class RankDomains {
 public:
  explicit RankDomains(const Communicator& ranks) : ranks_(ranks) {}

  // Both are collective. `costs` are of the particles in their present order (Costs); the first time, and where no rank
  // has any, particles count alike.
  void cut(const Stream& stream, const Particles& particles, const Costs& costs);
  // `carried` (may be null) has the particles' length and goes with them, on all ranks or on none.
  void move(const Stream& stream, Particles& particles, VectorArray* carried) const;

  // The box of an isolated set has doubled about its middle.
  void double_box() {
    if (domains_) domains_->double_box();
  }

 private:
  Communicator ranks_;
  std::optional<Domains> domains_;
  std::uint64_t updates_ = 0;
};

}  // namespace maki
