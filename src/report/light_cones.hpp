// The light cones of a run in its report.
#pragma once

#include <string>

#include "src/report/output_figures.hpp"

namespace maki::report {

// A row for each written shell in the folders lightcone_NN: redshifts, distances, particles, map. In a run over sites
// each page has the shells of its own site.
Part light_cones_part(const std::string& directory);

}  // namespace maki::report
