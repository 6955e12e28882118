// The light cones of a run on its page.
#pragma once

#include <string>

#include "src/report/output_figures.hpp"

namespace maki::report {

// A row for each shell in the folders lightcone_NN that has been written: redshifts, distances, particles, map. The page of a
// run over sites has the shells of its own site.
Part light_cones_part(const std::string& directory);

}  // namespace maki::report
