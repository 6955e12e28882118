#include "src/report/light_cones.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <regex>

#include "kernels/error.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/lightcone/sky_map.hpp"
#include "src/report/html.hpp"

namespace maki::report {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRows = 60;

// Facts of a shell from its files.
struct Shell {
  std::array<double, 2> redshifts{}, distances{};  // of its edges
  std::optional<std::uint64_t> particles;
  std::optional<int> nside;
};

std::array<double, 2> two_of(hid_t header, const char* name, const std::string& path) {
  const std::vector<double> numbers = read_attribute<double>(header, name);
  if (numbers.size() != 2) throw Error(fmt::format("'{}' is no shell of a light cone", path), name);
  return {numbers[0], numbers[1]};
}

void read_particles(const std::string& path, Shell& shell) {
  const H5Id file = open_hdf5(path);
  const H5Id header = open_group(file, "Header");
  shell.redshifts = two_of(header, "ShellRedshifts", path);
  shell.distances = two_of(header, "ShellDistances", path);
  const auto counts = read_attribute<std::uint64_t>(header, "NumPart_ThisFile");
  shell.particles = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

void read_map(const std::string& path, Shell& shell) {
  const std::vector<double> keys = sky_map_numbers(path, {"ZNEAR", "ZFAR", "DISTNEAR", "DISTFAR", "NSIDE"});
  shell.redshifts = {keys[0], keys[1]};
  shell.distances = {keys[2], keys[3]};
  shell.nside = static_cast<int>(keys[4]);
}

using Read = void (*)(const std::string&, Shell&);

// Adds the facts of files of one kind.
void add_files(const std::vector<std::pair<int, std::string>>& files, Read read, std::map<int, Shell>& shells,
               Part& part) {
  for (const auto& [number, path] : files) {
    try {
      read(path, shells[number]);
    } catch (const Error& error) {
      part.problems.push_back(error.what());
    }
  }
}

void add_rows(const fs::path& folder, HtmlTable& table, Part& part) {
  std::map<int, Shell> shells;
  add_files(numbered_files(folder.string(), "conesnap", "(\\.\\d+)?\\.hdf5"), read_particles, shells, part);
  add_files(numbered_files(folder.string(), "map", "(\\.\\d+)?\\.fits"), read_map, shells, part);
  for (const auto& [number, shell] : shells)
    if (shell.particles || shell.nside)
      table.rows.push_back({folder.filename().string(), fmt::format("{}", number),
                            fmt::format("{:.4g} to {:.4g}", shell.redshifts[0], shell.redshifts[1]),
                            fmt::format("{:.5g} to {:.5g}", shell.distances[0], shell.distances[1]),
                            shell.particles ? fmt::format("{}", *shell.particles) : "none written",
                            shell.nside ? fmt::format("NSIDE {}", *shell.nside) : "none"});
}

std::vector<fs::path> observers_in(const std::string& directory) {
  static const std::regex known(R"(lightcone_\d{2,9})");
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored))
    if (std::regex_match(entry.path().filename().string(), known)) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace

Part light_cones_part(const std::string& directory) {
  Part part;
  HtmlTable table{{"observer", "shell", "redshifts", "comoving distances", "particles", "map"}, {}, {}};
  for (const fs::path& folder : observers_in(directory)) add_rows(folder, table, part);
  if (table.rows.empty()) return part;
  const std::size_t all = table.rows.size();
  table.rows.resize(std::min(all, kMostRows));
  part.html = html(table);
  if (all > kMostRows) part.html += paragraph(fmt::format("{} of {} shells.", kMostRows, all));
  return part;
}

}  // namespace maki::report
