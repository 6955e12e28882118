#include "src/run/group_files.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <functional>

namespace maki {

std::string mass_function_path(const std::string& catalogue) {
  const std::filesystem::path path(catalogue);
  return (path.parent_path() / (path.stem().string() + "_mass_function.txt")).string();
}

void write_group_files(const std::string& path, const GroupCatalogue& catalogue, const MassFunction* expected,
                       const Provenance& provenance, bool overwrite) {
  write_group_catalogue(path, catalogue, provenance, overwrite);
  std::function<double(double)> tinker;
  if (expected) tinker = [&](double mass) { return (*expected)(mass); };
  write_mass_function(mass_function_path(path), catalogue, tinker, provenance, overwrite);
}

std::string summary_of(const GroupCatalogue& catalogue) {
  return fmt::format("{} groups of {} particles or more hold {} of {}", catalogue.groups.size(), catalogue.minimum,
                     catalogue.member_ids.size(), catalogue.particles);
}

}  // namespace maki
