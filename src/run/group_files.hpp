// Groups of friends as files: beside the snapshots of a run, and for maki groups.
#pragma once

#include <string>

#include "src/cosmology/mass_function.hpp"
#include "src/groups/catalogue.hpp"

namespace maki {

// "a/groups_003_mass_function.txt" of "a/groups_003.hdf5".
std::string mass_function_path(const std::string& catalogue);

// Writes the catalogue to `path` and its mass function beside it; without `expected` the column of what is expected is 0.
// Throws Error where a file exists (unless `overwrite`) or cannot be written.
void write_group_files(const std::string& path, const GroupCatalogue& catalogue, const MassFunction* expected,
                       const Provenance& provenance, bool overwrite);

// "476 groups of 32 particles or more hold 87654 of 262144".
std::string summary_of(const GroupCatalogue& catalogue);

}  // namespace maki
