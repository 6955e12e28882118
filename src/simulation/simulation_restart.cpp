// What a run keeps of its state, and how it goes on from it.
#include <algorithm>
#include <atomic>

#include "src/simulation/simulation.hpp"

namespace maki {

// Both ranges once more where the run was left: the step that ends here has been told of.
void Simulation::resume() {
  integrator_->resume(resumed_from_->integrator);
  gravity_->release_potentials();
  if (sample_) publish_totals(*sites_, sample_->step, sample_->sums);
  timers_.collect();
}

void Simulation::after_boundary(std::uint64_t next_output) {
  keep_state(next_output);
  if (restart_wanted_) {
    const PhaseTimers::Scope scope(timers_, "restart", stream_);
    observer_.restart(kept_.back());
    restart_at_ = agreement_.number();
  }
  restart_wanted_ = false;
}

// Keeps the state: for a restart; and where sums of other sites come later, at each boundary the last two, as a site that is
// lost may not have ended the last step.
void Simulation::keep_state(std::uint64_t next_output) {
  const bool for_others = agreement_.delay() > 0;
  if (!restart_wanted_ && !for_others) return;
  const PhaseTimers::Scope scope(timers_, "restart", stream_);
  if (kept_.size() < (for_others ? 2 : 1))
    kept_.emplace_back();
  else
    std::rotate(kept_.begin(), kept_.begin() + 1, kept_.end());
  copy_state(next_output, kept_.back());
}

// Another site does not answer any more. What this one has computed since the last boundary is of no use.
RunResult Simulation::leave(const std::string& reason) {
  observer_.message(reason);
  for (const auto& kept : kept_) observer_.restart(kept);
  const RunState& last = kept_.back()->state;
  result_ = last.result;
  result_.time = last.file_time;
  result_.particles = last.field.total;
  result_.stopped_by = "the loss of another site";
  result_.site_lost = true;
  return result_;
}

// Into the memory of the state that was there, unless that is being written.
void Simulation::copy_state(std::uint64_t next_output, std::shared_ptr<KeptState>& place) const {
  if (!place || place.use_count() > 1) place = std::make_shared<KeptState>();
  std::atomic_thread_fence(std::memory_order_acquire);  // what a writer read of it has been read
  KeptState& kept = *place;
  RunState& state = kept.state;
  state.header = header_;
  state.frame = frame_;
  state.integrator = integrator_->state();
  state.field = field_->state();
  state.energy = energy_.state();
  state.sample = sample_;
  state.drifts = gravity_->drifts();
  state.result = result_;
  state.first_momentum = first_momentum_;
  state.removed_energy = removed_energy_;
  state.last_kinetic_t = last_kinetic_t_;
  state.last_energy_step = last_energy_step_;
  state.elapsed = elapsed_;
  state.outputs = next_output;
  state.file_time = file_time();
  const auto starts = gravity_->slabs().starts();
  state.slabs.assign(starts.begin(), starts.end());
  copy_to_rows(stream_, particles_, kept.particles);
  kept.escapers = field_->escapers();
}

}  // namespace maki
