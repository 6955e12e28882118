// Figures of a run's page: plots and single numbers from its steps, "" where the records lack their numbers; and of its
// outputs: pictures, power spectra, mass functions of groups, shells of light cones.
#pragma once

#include <map>
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

// A text file of columns with facts in comments: power_NNN.txt or groups_NNN_mass_function.txt.
struct Columns {
  std::map<std::string, double> facts;                 // "# Redshift 3" in the comments
  std::map<std::string, std::vector<double>> columns;  // by the names in the last comment; of equal length
  std::string comments;

  double fact(const std::string& name) const;                        // NaN where there is none
  const std::vector<double>& column(const std::string& name) const;  // empty where there is none
  // The text of the comments between `words` and the next comma or semicolon; "" where `words` are missing.
  std::string after(const std::string& words) const;
};

// Throws Error where the file cannot be read, or a row does not have as many numbers as there are names.
Columns read_columns(const std::string& path);

// A part of the page, and sentences on missing or damaged files.
struct Part {
  std::string html;
  std::vector<std::string> problems;
};

// At most eight of image_NNN.png, reduced. `bytes`: their size in the page.
Part pictures_part(const std::string& directory, const RunRecords& records, std::size_t& bytes);
// power_NNN.txt against linear theory and HALOFIT, at most six, and the growth of the largest modes.
Part spectra_part(const std::string& directory, const RunRecords& records);
// groups_NNN_mass_function.txt beside Tinker et al. 2008, at most six.
Part mass_functions_part(const std::string& directory);
// A row for each written shell in the folders lightcone_NN: redshifts, distances, particles, map. In a run over sites
// each page has the shells of its own site.
Part light_cones_part(const std::string& directory);

}  // namespace maki::report
