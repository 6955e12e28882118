// Times and messages of a run over several sites: sites_trace.csv, a part of each line of metrics, and a table at the
// end in the form of SUSHI's table 7.
//
// Waiting times are those of the gateway for messages that had not arrived; all ranks of the site wait with it. A wait
// for the whole transit of a message corresponds to half a round trip.
#pragma once

#include <array>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/simulation/metrics.hpp"
#include "wan/sites/sites.hpp"

namespace maki {

// Parameters of the run for the predictions of eq. 12.
struct SitesRunFacts {
  std::uint64_t particles = 0;  // N, of all sites
  int mesh = 0;                 // cells along a side, M^(1/3); 0: no mesh
  double theta = 0;
};

// Record of this site for one step.
struct OwnRecord {
  std::uint64_t step = 0;
  bool comoving = true;
  double time = 0;                                // scale factor, or time
  bool rebuilt = false;                           // lists were made anew
  bool long_step_end = false;                     // the mesh was used
  double seconds = 0;                             // of the slowest rank, as the next three members
  double force_seconds = 0;                       // lists walked and evaluated
  double tree_seconds = 0;                        // the short-range force, with waiting times
  double mesh_seconds = 0;                        // the long-range force, with waiting times
  double transform_seconds = 0;                   // part of mesh_seconds: transforms of the whole mesh; 0: unknown
  double coding_seconds = 0;                      // part of mesh_seconds: coding and decoding of messages
  double local_seconds = 0;                       // waiting for other ranks' trees, mean over ranks
  std::uint64_t particles = 0, interactions = 0;  // of all ranks
};
// Collective over the site's ranks.
OwnRecord own_record(const Communicator& ranks, const StepMetrics& metrics, const PhaseTimers& timers);

// Sums over the steps of one site, from step 1 on. Sent between sites as bytes.
struct SiteSums {
  struct Kind {  // kinds of steps: with new lists; others with the mesh; all others
    std::uint64_t steps = 0, waits = 0;
    double seconds = 0, waited = 0;
  };
  int ranks = 1;
  std::uint64_t steps = 0, particles = 0, interactions = 0;  // particles: at the end
  double seconds = 0, tree = 0, mesh = 0, local = 0;         // tree and mesh without waiting times
  double transform = 0, coding = 0;                          // of the mesh
  std::array<Kind, 3> kinds{};
  SitesTraffic traffic{};  // of steps
  SitesTraffic outputs{};  // between steps: snapshots, spectra, pictures

  std::uint64_t rebuilds() const { return kinds[0].steps; }
  std::uint64_t mesh_steps = 0;
  double waited() const;  // seconds, in steps
  double work() const { return seconds - waited(); }
};

// The table and the lines below it. `sites` and `names` in the order of the ring, of equal length.
std::string sites_table(const std::vector<SiteSums>& sites, const std::vector<std::string>& names,
                        const SitesRunFacts& facts);
// Estimated seconds a step of a single site with all ranks: each site's time without waiting, weighted by its share of
// the ranks, less the repeated transforms of the mesh and the coding of masses. (Trees for other sites count as work
// that a single site would do too.)
double one_site_seconds(const std::vector<SiteSums>& sites);
double efficiency(const std::vector<SiteSums>& sites);  // eq. 14

class SitesReport {
 public:
  // Writes `path` on rank 0 from the first step on. Throws Error where it exists (unless `overwrite`). A run that was
  // resumed at step `resumed_at` continues the existing file after the line of that step.
  SitesReport(sites::Sites& sites, std::string path, bool overwrite, std::optional<std::uint64_t> resumed_at = {});
  void describe(const SitesRunFacts& facts) { facts_ = facts; }

  // `traffic`: messages since the last call or output(). Throws Error where the disk is full.
  void step(const OwnRecord& own, const SitesRecord& record, const SitesTraffic& traffic);
  // Messages of an output; those of phases other than Phase::kOutput count for the next step.
  void output(const SitesTraffic& traffic);
  // A JSON object about the last step.
  std::string json() const;
  // The table, the same at all sites; where a site is lost, a table of only this site. Collective over all sites
  // (Phase::kOutput).
  std::string finish();

  const SiteSums& sums() const { return sums_; }

 private:
  void open();
  void write_line(const SitesTraffic& traffic);

  sites::Sites& sites_;
  std::string path_;
  bool overwrite_;
  std::optional<std::uint64_t> resumed_at_;
  std::optional<std::ofstream> file_;
  SitesRunFacts facts_;
  SiteSums sums_;
  SitesTraffic carried_{};
  OwnRecord own_;
  SitesRecord record_;
  SitesTraffic last_{};
};

}  // namespace maki
