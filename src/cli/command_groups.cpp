// maki groups and links: friends-of-friends groups, and their progenitors.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "src/cli/commands.hpp"
#include "src/groups/catalogue.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/run/products.hpp"
#include "src/run/start_run.hpp"

namespace maki {

namespace {

struct GroupsOptions {
  std::string snapshot, output, config;
  GroupOptions groups;
  bool overwrite = false;
};

// "b/groups_003.hdf5" for "b/snapshot_003.hdf5"; for other names "groups_" is put in front.
std::string default_output(const std::string& snapshot) {
  const std::filesystem::path path(snapshot);
  std::string name = path.stem().string();
  const std::string usual = "snapshot_";
  name = "groups_" + (name.starts_with(usual) ? name.substr(usual.size()) : name);
  return (path.parent_path() / (name + ".hdf5")).string();
}

void write_groups(GroupsOptions given) {
  const Communicator ranks = Communicator::world();
  if (given.output.empty()) given.output = default_output(given.snapshot);
  root_succeeds(ranks, [&] {
    for (const std::string& path : {given.output, mass_function_path(given.output)})
      check_output(path, given.overwrite, {given.snapshot});
  });
  LoadedSet loaded(given.snapshot, ranks);
  require_whole("groups cannot be found in", given.snapshot, loaded.report());
  print_lines(stdout, loaded.report().notes);
  std::function<double(double)> expected;
  const auto expect = [&](const Config& config) { expected = mass_function_of(config, loaded.header()); };
  if (loaded.frame().periodic)  // others have no groups
    root_succeeds(ranks, [&] { with_spectrum(given.config, given.snapshot, "Tinker08", expect, say); });
  const auto begin = std::chrono::steady_clock::now();
  const GroupCatalogue catalogue = loaded.find_groups(given.groups);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  root_succeeds(ranks, [&] { fmt::print("{}, {:.2f} s\n", summary_of(catalogue), seconds.count()); });
  write_group_files(given.output, catalogue, expected, loaded.provenance(), given.overwrite, ranks);
  root_succeeds(ranks, [&] { fmt::print("wrote {}\nwrote {}\n", given.output, mass_function_path(given.output)); });
}

}  // namespace

void add_groups_command(CLI::App& program) {
  auto options = std::make_shared<GroupsOptions>();
  CLI::App* command = add_command(program, "groups", "Find friends-of-friends groups in a snapshot and measure them",
                                  "maki groups output/quickstart/snapshot_003.hdf5", options, write_groups);
  command->add_option("SNAPSHOT", options->snapshot, "HDF5 or GADGET binary, of a periodic box")->required();
  command->add_option("-o,--output", options->output,
                      "HDF5 file to write; default: groups_NNN.hdf5 beside the snapshot");
  command
      ->add_option("--linking-length", options->groups.linking_length,
                   "in mean distances between particles; default: 0.2")
      ->check(above_zero());
  command->add_option("--minimum", options->groups.minimum, "particles of a group, at least; default: 32")
      ->check(above_zero());
  command->add_option("--config", options->config, "take the linear power spectrum from this configuration");
  command->add_flag("--overwrite", options->overwrite, "replace files that exist");
}

namespace {

struct LinksOptions {
  std::vector<std::string> catalogues;
  std::int64_t branch = kNoGroup;
  bool overwrite = false;
};

std::vector<CatalogueGroups> read_in_order(const std::vector<std::string>& paths, const Communicator& ranks) {
  std::vector<CatalogueGroups> all;
  for (const std::string& path : paths) {
    all.push_back(read_catalogue_groups(path, ranks));
    root_succeeds(ranks, [&] {
      if (all.size() > 1) require_order(all[all.size() - 2], all.back());
    });
  }
  return all;
}

void print_row(const CatalogueGroups& catalogue, std::size_t group) {
  const CatalogueGroups::Row& row = catalogue.rows[group];
  fmt::print("{:8.3f} {:8d} {:10d} {:12.5g} {:12.5g} {:9.4g} {:10.5g} {:10.5g} {:10.5g}\n", catalogue.redshift, group,
             catalogue.length(group), row.mass, row.mass_mean200, row.v_max, row.position[0], row.position[1],
             row.position[2]);
}

// The table's header. Throws Error where there is no such group.
void begin_branch(const CatalogueGroups& last, std::int64_t group) {
  if (group >= static_cast<std::int64_t>(last.size()))
    throw Error(fmt::format("'{}' has no group {}", last.name, group),
                last.size() == 0 ? "it holds no groups" : fmt::format("it has {}, and the first is 0", last.size()),
                last.size() == 0 ? "" : "choose another --branch");
  fmt::print(
      "# masses, velocities and lengths in the units of the catalogues\n#{:>7} {:>8} {:>10} {:>12} {:>12} {:>9} {:>10} {:>10} {:>10}\n",
      "z", "group", "particles", "M_fof", "M_200m", "v_max", "x", "y", "z");
}

// A group of the last catalogue and its main progenitors, back in time.
void print_branch(const std::vector<CatalogueGroups>& all, std::int64_t group, const Communicator& ranks) {
  root_succeeds(ranks, [&] { begin_branch(all.back(), group); });
  for (std::size_t i = all.size(); group != kNoGroup;) {
    --i;
    root_succeeds(ranks, [&] { print_row(all[i], static_cast<std::size_t>(group)); });
    if (i == 0) break;
    const MergerLinks links = link_catalogues(all[i - 1], all[i], ranks);
    if (ranks.rank() == 0) group = links.main_progenitor[static_cast<std::size_t>(group)];
    ranks.broadcast(&group, sizeof group, 0);
  }
}

void link(const LinksOptions& options) {
  const Communicator ranks = Communicator::world();
  if (options.branch != kNoGroup) return print_branch(read_in_order(options.catalogues, ranks), options.branch, ranks);
  for (std::size_t i = 1; i < options.catalogues.size(); ++i) {
    const std::string &earlier = options.catalogues[i - 1], &later = options.catalogues[i];
    const std::string told = link_group_files(earlier, later, options.overwrite, ranks);
    root_succeeds(ranks, [&] { fmt::print("{}\nwrote {}\n", told, links_path(later)); });
  }
}

}  // namespace

void add_links_command(CLI::App& program) {
  auto options = std::make_shared<LinksOptions>();
  CLI::App* command = add_command(program, "links", "Link groups to their progenitors in earlier catalogues",
                                  "maki links output/quickstart/groups_*.hdf5 --branch 0", options, link);
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
