// One observer's light cone of a run: collects particles as the light sphere meets them, and writes each shell when the
// light sphere has left it.
//
// Positions within a step are linear in its drift factor, so the point where an image meets the sphere is exact for the
// leapfrog (kernels/lightcone). An image belongs to the shell of its distance at that point.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/lightcone/cone_shells.hpp"
#include "src/lightcone/cone_state.hpp"
#include "src/simulation/simulation.hpp"

namespace maki {

// All calls are collective.
class LightCone {
 public:
  static constexpr int kRemembered = 3;  // over sites: states of the last boundaries
  // For estimates: host bytes a particle of the rank for a batch of crossings. A crossing is held three times: as
  // found, with its shell, and as a record for a spool (in a growing vector, twice as long).
  static constexpr double kBatchBytes = kCrossingsAtOnce * (sizeof(Crossing) + 72 + 2 * sizeof(ShellParticle));
  // The folder is made with the first drift. Each of several sites collects images of its own particles.
  struct Place : RunPlace {
    std::string folder;
  };
  LightCone(const LightConeOptions& options, std::size_t observer, const Place& place, const Provenance& provenance);

  // Restores the state of step `step`, which has to exist; the first drift removes files of later steps. Throws Error,
  // the same on all ranks, where a part of the state is missing or damaged.
  void resume(std::uint64_t step);
  // Collects the crossings of a drift and writes the shells that it completes. Returns their files. Throws Error, the
  // same on all ranks.
  std::vector<std::string> drifted(const Drift& drift, const Timeline& timeline);
  // Writes a state for a restart after `step`: of the last drift, or, over several sites, also of one of the last
  // kRemembered boundaries. Removes states for which `is_kept` is false, and the spools that only these needed. Throws
  // Error, the same on all ranks.
  void save(std::uint64_t step, const std::function<bool(std::uint64_t)>& is_kept);
  // Removes, at the end of the run, states for which `is_kept` is false, and the spools that no existing restart needs.
  // Throws Error, the same on all ranks.
  void end(const std::function<bool(std::uint64_t)>& is_kept);

 private:
  struct Radii {
    double before, after;  // length units
  };
  struct Moments;
  struct Placed;
  using PixelsByShell = std::map<std::size_t, PixelCounts>;
  std::string path(const std::string& name) const;
  std::vector<std::string> own_spools() const;
  double quantum_of(const Drift& drift) const;
  void begin(const Drift& drift, const Radii& radii);
  void cut_back();
  void refill_maps();
  std::vector<std::string> meet(const Drift& drift, const Timeline& timeline, const Radii& radii);
  Moments moments_of(const Drift& drift, const Timeline& timeline, const Radii& radii) const;
  PixelsByShell collect(const Drift& drift, const Moments& moments);
  Placed place(const Crossing& met, const Moments& moments) const;
  void keep(const std::vector<Crossing>& crossings, const Moments& moments, PixelsByShell& pixels);
  void add_to_maps(const Radii& radii, PixelsByShell pixels);
  std::vector<std::string> write_files(std::size_t shell, const Drift& drift);
  ConeState state() const;
  void drop_spools(std::uint64_t oldest);
  void remove_spools(std::uint64_t oldest);
  void remove_unneeded(std::uint64_t oldest, const std::function<bool(std::uint64_t)>& is_kept);

  LightConeOptions options_;
  ConeObserver observer_;
  Place place_;
  Provenance provenance_;
  bool begun_ = false;
  std::uint64_t last_step_ = 0;
  double quantum_ = 0;                            // mass of a count of the maps
  std::map<std::size_t, SkyMap> maps_;            // of open shells
  std::map<std::size_t, std::uint64_t> written_;  // by shell: the step of its files; until its spools are removed
  std::optional<std::uint64_t> resumed_at_;
  std::vector<ConeState> old_;                        // of the restart, until begin()
  std::map<std::string, spool::RunningMark> spools_;  // by name, of shells not written yet
  std::map<std::uint64_t, ConeState> remembered_;     // over sites: of the last boundaries
};

}  // namespace maki
