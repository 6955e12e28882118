// Sources as separate trees: the rank's own tree, then the forests of imported trees, evaluated one after another.
#pragma once

#include "src/gravity/source_trees.hpp"

namespace maki {

class Forests final : public SourceTrees {
 public:
  Forests(OwnTree& own, const std::vector<TreeImports*>& imports, ListForces& forces)
      : own_(own), imports_(imports), forces_(forces) {}

  void evaluate(const Stream& stream, const Particles& particles, bool fresh, const ForceOutput& out) override;
  void evaluate_again(const Stream& stream, const Particles& particles, const ForceOutput& out) override;
  std::vector<Sources> all(const Particles& particles) override;
  const DeviceBuffer<Group>& own_groups() const override { return forces_.groups(); }

 private:
  Sources own(const Particles& particles) { return {own_.octree(), own_.view(particles), forces_.own_lists()}; }

  OwnTree& own_;
  const std::vector<TreeImports*>& imports_;
  ListForces& forces_;
};

}  // namespace maki
