// The files of a run beside its snapshots: spectra, pictures, groups, light cones and the report.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/groups/catalogue.hpp"
#include "src/lightcone/cone_shells.hpp"
#include "src/lightcone/light_cone.hpp"
#include "src/run/products.hpp"
#include "src/run/setup.hpp"
#include "src/simulation/run_files.hpp"
#include "wan/sites/gathered_set.hpp"

namespace maki {

// Options from a run's resolved configuration; no observers where it has none. Throws Error where the shells reach over
// too many images of the box.
LightConeOptions light_cone_options(const Prepared& run, const Timeline& timeline);

// Missing or damaged parts of the light cones' state in a restart; empty where all are whole or there are no light
// cones. `directory`: the run's. Collective; the same on all ranks.
std::string damage_of_light_cones(const std::string& directory, const Config& config, std::uint64_t step,
                                  const Communicator& ranks);

// Bytes of all ranks, for particles at the mean density.
struct LightConeBytes {
  double disk = 0;           // all observers' particles, not compressed
  double disk_maps = 0;      // all observers' maps of one site; each site writes its own of all the sky
  double spools = 0;         // disk: particles of all shells before they are written
  double largest_spool = 0;  // of one shell of each observer
  double largest_shell = 0;  // host: one shell of one observer while it is written
  double most_met = 0;       // crossings in one shell of one observer
  double maps = 0;           // host: of two shells of each observer, at one site
};
// 0 where only the file of initial conditions has the box size. Throws Error where the shells reach over too many
// images of the box, and where keys of light cones contradict each other.
LightConeBytes light_cone_bytes(Config config, std::uint64_t particles);

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
  void finish(const RunResult& result, const PhaseTimers& timers);  // RunFiles::finish(), and the end of light cones
  // Writes report.html if output.report is set, after finish(). A failure leads only to a message.
  void report();

 private:
  void begin_cones(const Prepared& run, const RunFileOptions& options);
  void spare_the_run(const std::function<void()>& write);
  bool may_have_restart(std::uint64_t step) const;
  void write_products(const DeviceSet& set, int index);
  void write_picture(const DeviceSet& set, const std::string& name);
  DeviceSet set_of(const OutputState& state, const sites::GatheredSet& all) const;
  GroupCatalogue groups_of(const OutputState& state);
  void write_catalogue(const GroupCatalogue& found, int index);
  GroupCatalogue write_groups(const OutputState& state);
  template <class Make>
  auto of_spectrum(const char* lack, Make make) -> decltype(make());

  Provenance provenance_;
  bool overwrite_;
  Config config_;
  int power_mesh_ = 0;  // 0: no power spectra
  PictureOptions picture_;
  bool told_of_empty_picture_ = false;
  bool groups_;
  bool groups_alone_;                 // snapshots hold only members of groups
  std::optional<Timeline> timeline_;  // where there are light cones
  std::vector<LightCone> cones_;
};

}  // namespace maki
