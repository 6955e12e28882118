// Figures of what a run wrote at its outputs: pictures, power spectra, mass functions of groups.
#pragma once

#include <string>
#include <vector>

#include "src/report/run_records.hpp"

namespace maki::report {

// A part of the page, and sentences on files that are missing or damaged.
struct Part {
  std::string html;
  std::vector<std::string> problems;
};

// Files NAME_NNN.ENDING in the directory, by their numbers.
std::vector<std::pair<int, std::string>> numbered_files(const std::string& directory, const std::string& name,
                                                        const std::string& ending);

// image_NNN.png, made smaller, at most eight of them. `bytes`: what they take of the page.
Part pictures_part(const std::string& directory, const RunRecords& records, std::size_t& bytes);
// power_NNN.txt against linear theory and HALOFIT, at most six, and the growth of the largest modes.
Part spectra_part(const std::string& directory, const RunRecords& records);
// groups_NNN_mass_function.txt beside Tinker et al. 2008, at most six.
Part mass_functions_part(const std::string& directory);

}  // namespace maki::report
