// Plots and single numbers from the steps of a run. Plots are "" where the records lack their numbers.
#pragma once

#include <string>
#include <vector>

#include "src/plot/plot.hpp"
#include "src/report/run_records.hpp"

namespace maki::report {

// Marks of an axis of scale factors at round redshifts, few enough to be read.
std::vector<plot::Mark> redshift_marks(double first, double last);

std::string energy_figures(const RunRecords& records);
std::string step_figures(const RunRecords& records);
std::string time_figures(const RunRecords& records);  // seconds of steps by phase
std::string rank_figures(const RunRecords& records);  // imbalance, memory
std::string list_figures(const RunRecords& records);  // errors of kept lists
std::string site_figures(const RunRecords& records);  // waits and slabs

// The largest value of a number over steps; kUnknown where no step has it.
double largest(const std::vector<Step>& steps, double Step::*number);
double last(const std::vector<Step>& steps, double Step::*number);

}  // namespace maki::report
