// How a run over several sites spent its time and what it sent: sites_trace.csv, a part of each line of metrics, and a
// table at the end in the form of SUSHI's table 7.
//
// What was waited for is what the gateway waited in receives that were not there yet; all its ranks wait with it. One
// that takes the way of a message stands for half a round trip.
#pragma once

#include <array>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/simulation/metrics.hpp"
#include "src/simulation/sites_record.hpp"
#include "wan/sites/sites.hpp"

namespace maki {

// What is computed, for the predictions of eq. 12.
struct SitesRunFacts {
  std::uint64_t particles = 0;  // N, of all sites
  int mesh = 0;                 // cells along a side, M^(1/3); 0: no mesh
  double theta = 0;
};

// This site's own part of a step.
struct OwnRecord {
  std::uint64_t step = 0;
  bool comoving = true;
  double time = 0;                                // scale factor, or time
  bool rebuilt = false;                           // lists were made anew
  bool long_step_end = false;                     // the mesh was used
  double seconds = 0;                             // of the slowest rank, as the next three
  double force_seconds = 0;                       // lists walked and evaluated
  double tree_seconds = 0;                        // all of the short-range force, with what was waited for in it
  double mesh_seconds = 0;                        // all of the long-range force, likewise
  double transform_seconds = 0;                   // of that, what each site does for the whole mesh; 0: unknown
  double coding_seconds = 0;                      // of that, for the form of messages
  double local_seconds = 0;                       // waited for other ranks' trees, mean over ranks
  std::uint64_t particles = 0, interactions = 0;  // of all ranks
};
// Collective over the site's ranks.
OwnRecord own_record(const Communicator& ranks, const StepMetrics& metrics, const PhaseTimers& timers);

// Sums over the steps of one site, from step 1 on. A message as it is.
struct SiteSums {
  struct Kind {  // steps with new lists; others with the mesh; all others
    std::uint64_t steps = 0, waits = 0;
    double seconds = 0, waited = 0;
  };
  int ranks = 1;
  std::uint64_t steps = 0, particles = 0, interactions = 0;  // particles: at the end
  double seconds = 0, tree = 0, mesh = 0, local = 0;         // tree and mesh without what was waited for
  double transform = 0, coding = 0;                          // of the mesh
  std::array<Kind, 3> kinds{};
  SitesTraffic traffic{};  // of steps
  SitesTraffic outputs{};  // of what was done between steps: snapshots, spectra, pictures

  std::uint64_t rebuilds() const { return kinds[0].steps; }
  std::uint64_t mesh_steps = 0;
  double waited() const;  // in steps
  double work() const { return seconds - waited(); }
};

// The table and what stands below it, for sites in the order of the ring. `names` as many.
std::string sites_table(const std::vector<SiteSums>& sites, const std::vector<std::string>& names,
                        const SitesRunFacts& facts);
// Seconds a step of one site that has all ranks, as far as the sites' work tells: each site's time without what it
// waited for, by its share of the ranks; transforms of the mesh are made once then, not by every site, and no masses
// are coded. (What trees for other sites cost is taken for work that one site would do as well.)
double one_site_seconds(const std::vector<SiteSums>& sites);
double efficiency(const std::vector<SiteSums>& sites);  // eq. 14

class SitesReport {
 public:
  // Writes `path` on rank 0 from the first step on. Throws Error where it exists (unless `overwrite`). Of a run that is
  // resumed at a step: goes on with the file that is there, after the line of that step.
  SitesReport(sites::Sites& sites, std::string path, bool overwrite, std::optional<std::uint64_t> resumed_at = {});
  void describe(const SitesRunFacts& facts) { facts_ = facts; }

  // `traffic`: since the last call or output(). Throws Error where the disk is full.
  void step(const OwnRecord& own, const SitesRecord& told, const SitesTraffic& traffic);
  // What came and went with an output; messages of other phases count to the next step.
  void output(const SitesTraffic& traffic);
  // A JSON object about the last step.
  std::string json() const;
  // Collective over all sites (Phase::kOutput). The table, the same everywhere; where a site is lost, of this one
  // alone.
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
  SitesRecord told_;
  SitesTraffic last_{};
};

}  // namespace maki
