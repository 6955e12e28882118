// The files of a run beside its snapshots: spectra, pictures, groups, light cones and the report.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "src/groups/catalogue.hpp"
#include "src/lightcone/light_cone.hpp"
#include "src/run/products.hpp"
#include "src/simulation/run_files.hpp"
#include "wan/sites/gathered_set.hpp"

namespace maki {

// RunFiles with a power spectrum, a picture and a catalogue of groups beside each snapshot, and with light cones. One
// object on each rank.
class RunProducts : public RunFiles {
 public:
  RunProducts(const RunFileOptions& options, const Provenance& provenance, const Prepared& run,
              const RunPlace& place = {});
  void output(const OutputState& state) override;
  void film(const OutputState& state) override;
  void drifted(const Drift& drift) override;
  void restart(const std::shared_ptr<const KeptState>& kept) override;
  void finish(const RunResult& result, const PhaseTimers& timers);  // of RunFiles, and of light cones
  // Writes report.html if output.report is set, after finish(). A failure leads only to a message.
  void report();

 private:
  void begin_cones(const Prepared& run, const RunFileOptions& options);
  void write_products(const DeviceSet& set, int index);
  DeviceSet set_of(const OutputState& state, const sites::GatheredSet& all) const;
  GroupCatalogue groups_of(const OutputState& state);
  GroupCatalogue write_groups(const OutputState& state);
  std::unique_ptr<const MassFunction> expected_masses(const SnapshotHeader& header);
  PowerTheory theory(const SnapshotHeader& header);

  Provenance provenance_;
  bool overwrite_;
  int power_mesh_ = 0;  // 0: no power spectra
  int power_folding_ = 2;
  bool pictures_;
  PictureOptions picture_;
  bool groups_;
  bool groups_alone_;  // in snapshots
  bool reports_;
  std::optional<Timeline> timeline_;  // where there are light cones
  std::vector<LightCone> cones_;
  std::optional<Config> spectrum_;  // of the initial conditions, where the run made them
};

}  // namespace maki
