// The tables and plots of `maki model`, from the models of SUSHI, of Accelerated FDPS and of Maki.
#pragma once

#include <string>
#include <vector>

#include "src/model/maki.hpp"
#include "src/model/published.hpp"
#include "src/plot/plot.hpp"

namespace maki::model {

struct Table {
  std::vector<std::string> heads;
  std::vector<std::vector<std::string>> rows;  // as long as `heads`

  std::string text() const;  // columns as wide as their longest word, aligned right, the first aligned left
  std::string csv() const;   // words with commas or quotes in quotes
};

struct Report {
  Table table;
  plot::Plot plot;
  std::vector<std::string> notes;  // sentences below the table
};

// Rows for 1 to `sites` sites. `processes`: in all, except in speedup_report at each site.
Report table_report(const Problem& problem, const Machine& machine, int sites, double processes);
Report speedup_report(const Problem& problem, const Machine& machine, int sites, double processes);
Report efficiency_report(const Problem& problem, const Machine& machine, int sites, double processes);
// Efficiency over `sites` sites (eq. 14) against the rate between them, 10 MB/s to 10 GB/s.
Report bandwidth_report(const Problem& problem, const Machine& machine, int sites, double processes);
// One step over `sites` sites: its time, its bottleneck, memory.
Report predict_report(const Problem& problem, const Machine& machine, int sites, double processes);

// Reports of Accelerated FDPS. Throw Error where the machine has no [accelerator].
// Phases of a step with new lists, and with kept ones.
Report fdps_table_report(const FdpsRun& run, const Machine& machine);
// run.particles in all, on 1 to run.processes processes.
Report fdps_speedup_report(const FdpsRun& run, const Machine& machine);
// run.particles on each of 1 to run.processes processes.
Report fdps_efficiency_report(const FdpsRun& run, const Machine& machine);
// With slower and faster host memory and bus, as in fig. 10.
Report fdps_bandwidth_report(const FdpsRun& run, const Machine& machine);
// One step.
Report fdps_predict_report(const FdpsRun& run, const Machine& machine);

// Reports of Maki. run.sites: the number of sites, or the largest one. run.ranks: the ranks in all; for
// maki_speedup_report the ranks at each site. Throw Error as maki_step().
Report maki_speedup_report(const MakiRun& run, const Machine& machine);
Report maki_efficiency_report(const MakiRun& run, const Machine& machine);
Report maki_bandwidth_report(const MakiRun& run, const Machine& machine);
Report maki_predict_report(const MakiRun& run, const Machine& machine);

}  // namespace maki::model
