// Times and messages of a run over several sites: a part of each line of metrics, and a table at the end in the form of
// SUSHI's table 7.
//
// Equations are those of SUSHI (Groen, Portegies Zwart, Ishiyama & Makino). Waiting times are those of the gateway for
// messages that had not arrived; all ranks of the site wait with it. A wait for the whole transit of a message takes
// half a round trip.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/simulation/metrics.hpp"
#include "wan/sites/sites.hpp"

namespace maki {

// Parameters of the run for the bytes that eq. 12 predicts.
struct SitesRunFacts {
  std::uint64_t particles = 0;  // N, of all sites
  int mesh = 0;                 // cells along a side, M^(1/3); 0: no mesh
  double theta = 0;
};

// Record of this site for one step.
struct OwnRecord {
  std::uint64_t step = 0;
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
  struct Kind {  // of steps
    std::uint64_t steps = 0, waits = 0;
    double seconds = 0, waited = 0;
  };
  int ranks = 1;
  std::uint64_t steps = 0, particles = 0, interactions = 0;  // particles: at the end
  double seconds = 0, tree = 0, mesh = 0, local = 0;         // tree and mesh without waiting times
  double transform = 0, coding = 0;                          // of the mesh
  std::array<Kind, 3> kinds{};                               // steps with new lists; others with the mesh; all others
  SitesTraffic traffic{};                                    // of steps
  SitesTraffic outputs{};                                    // between steps: snapshots, spectra, pictures

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

// Collects the records of the steps at one site.
class SitesReport {
 public:
  SitesReport(sites::Sites& sites, const SitesRunFacts& facts);

  // `traffic`: messages since the last call or output().
  void step(const OwnRecord& own, const SitesRecord& record, const SitesTraffic& traffic);
  // Messages of an output; those of phases other than Phase::kOutput count for the next step.
  void output(const SitesTraffic& traffic);
  // A JSON object about the last step: "waited" (seconds in receives whose messages had not arrived), "waits", "sent",
  // "received" (bytes); "phases": by phase seconds waited, waits, and bytes sent, received and passed on for other
  // sites; "own": OwnRecord; "told_of": the step of which "all" has the other sites' records (SiteRecord), with their
  // slabs at this step.
  std::string json() const;
  // The table, the same at all sites; where a site is lost, a table of only this site. Collective over all sites
  // (Phase::kOutput).
  std::string finish();

  const SiteSums& sums() const { return sums_; }

 private:
  sites::Sites& sites_;
  SitesRunFacts facts_;
  SiteSums sums_;
  SitesTraffic carried_{};
  OwnRecord own_;
  SitesRecord record_;
  SitesTraffic last_{};
};

}  // namespace maki
