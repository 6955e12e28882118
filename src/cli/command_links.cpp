#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kernels/error.hpp"
#include "src/cli/commands.hpp"
#include "src/run/group_files.hpp"

namespace maki {
namespace {

struct Options {
  std::vector<std::string> catalogues;
  std::int64_t branch = kNoGroup;
  bool overwrite = false;
};

std::vector<CatalogueGroups> read_in_order(const std::vector<std::string>& paths) {
  std::vector<CatalogueGroups> all;
  for (const std::string& path : paths) {
    all.push_back(read_catalogue_groups(path));
    if (all.size() > 1) require_order(all[all.size() - 2], all.back());
  }
  return all;
}

void print_row(const CatalogueGroups& catalogue, std::size_t group) {
  const CatalogueGroups::Row& row = catalogue.rows[group];
  fmt::print("{:8.3f} {:8d} {:10d} {:12.5g} {:12.5g} {:9.4g} {:10.5g} {:10.5g} {:10.5g}\n", catalogue.redshift, group,
             catalogue.length(group), row.mass, row.mass_mean200, row.v_max, row.position[0], row.position[1],
             row.position[2]);
}

// A group of the last catalogue and its main progenitors, back in time.
void print_branch(const std::vector<CatalogueGroups>& all, std::int64_t group) {
  if (group >= static_cast<std::int64_t>(all.back().size()))
    throw Error(fmt::format("'{}' has no group {}", all.back().name, group),
                fmt::format("it has {}, and the first is 0", all.back().size()), "choose another --branch");
  fmt::print(
      "# masses, velocities and lengths in the units of the catalogues\n#{:>7} {:>8} {:>10} {:>12} {:>12} {:>9} {:>10} {:>10} {:>10}\n",
      "z", "group", "particles", "M_fof", "M_200m", "v_max", "x", "y", "z");
  for (std::size_t i = all.size(); group != kNoGroup;) {
    print_row(all[--i], static_cast<std::size_t>(group));
    if (i == 0) break;
    group = link_catalogues(all[i - 1], all[i]).main_progenitor[static_cast<std::size_t>(group)];
  }
}

void link(const Options& options) {
  if (options.branch != kNoGroup) return print_branch(read_in_order(options.catalogues), options.branch);
  for (std::size_t i = 1; i < options.catalogues.size(); ++i) {
    const std::string &earlier = options.catalogues[i - 1], &later = options.catalogues[i];
    fmt::print("{}\n", link_group_files(earlier, later, options.overwrite));
    fmt::print("wrote {}\n", links_path(later));
  }
}

}  // namespace

void add_links_command(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(program, "links", "Link groups to their progenitors in earlier catalogues",
                  "maki links output/quickstart/groups_*.hdf5 --branch 0", options, on_first_rank(link));
  command->add_option("CATALOGUES", options->catalogues, "files of maki groups, in the order of time")
      ->required()
      ->expected(2, -1);
  command
      ->add_option("--branch", options->branch,
                   "write nothing; print this group of the last catalogue and its main progenitors")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 53));
  command->add_flag("--overwrite", options->overwrite, "replace files that exist");
}

}  // namespace maki
