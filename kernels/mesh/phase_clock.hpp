// Times of the phases of one call.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "kernels/device/timer.hpp"
#include "kernels/mesh/mesh.hpp"

namespace maki {

// Marks between the phases of one call; does nothing until it is switched on.
class PhaseClock {
 public:
  using Phase = double MeshPhases::*;

  void switch_on() { clock_.emplace(); }
  void begin(const Stream& stream) {
    if (!clock_) return;
    clock_->clear();
    ends_.clear();
    begin_ = clock_->mark(stream);
  }
  void end(const Stream& stream, Phase phase) {
    if (clock_) ends_.emplace_back(phase, clock_->mark(stream));
  }
  MeshPhases seconds() const {
    MeshPhases sum;
    std::size_t from = begin_;
    for (const auto& [phase, mark] : ends_) {
      sum.*phase += clock_->seconds(from, mark);
      from = mark;
    }
    return sum;
  }

 private:
  std::optional<StreamClock> clock_;
  std::size_t begin_ = 0;
  std::vector<std::pair<Phase, std::size_t>> ends_;
};

}  // namespace maki
