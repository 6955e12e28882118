// One tree of own particles and the ghosts around them (ghost_tree.hpp).
#pragma once

#include "src/gravity/ghost_tree.hpp"
#include "src/gravity/source_trees.hpp"

namespace maki {

class GhostSources final : public SourceTrees {
 public:
  GhostSources(const GravityOptions& options, PhaseTimers& timers, OwnTree& own,
               const std::vector<TreeImports*>& imports, ListForces& forces)
      : options_(options), timers_(timers), own_(own), imports_(imports), forces_(forces), ghosts_(options) {}

  void evaluate(const Stream& stream, const Particles& particles, bool fresh, const ForceOutput& out) override;
  void evaluate_again(const Stream& stream, const Particles& particles, const ForceOutput& out) override;
  std::vector<Sources> all(const Particles&) override { return {joined()}; }
  const DeviceBuffer<Group>& own_groups() const override { return ghosts_.own_groups(); }
  std::uint64_t unkept_lists() const override { return unkept_lists_; }

 private:
  Sources joined() { return {ghosts_.tree(), ghosts_.view(), forces_.own_lists()}; }
  void evaluate_new_tree(const Stream& stream, const Particles& particles, bool want_potential);
  void evaluate_kept_tree(const Stream& stream, const Particles& particles, bool want_potential);
  void send(const Stream& stream, const Particles& particles, bool fresh);
  GhostTree::Ghosts take(const Stream& stream);
  void split_groups(const Stream& stream);

  const GravityOptions& options_;
  PhaseTimers& timers_;
  OwnTree& own_;  // only to choose what others need
  const std::vector<TreeImports*>& imports_;
  ListForces& forces_;
  GhostTree ghosts_;
  std::uint64_t unkept_lists_ = 0;
};

}  // namespace maki
