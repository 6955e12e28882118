#include "src/analysis/power_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numbers>

#include "kernels/error.hpp"
#include "src/io/safe_file.hpp"

namespace maki {

namespace {

double delta2(double k, double power) { return k * k * k * power / (2 * std::numbers::pi * std::numbers::pi); }

std::string commented(const std::string& text) {
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    result += "#   " + text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return result;
}

std::string comments(const PowerTable& table, const SnapshotHeader& header, const Provenance& p, std::size_t bins) {
  std::string text = "# Power spectrum of the density contrast, shot noise included\n";
  text += fmt::format("# Time {:.10g}\n# Redshift {:.10g}\n# Bins {}\n# BoxSize {:.10g}\n# MeshSize {}\n", header.time,
                      header.redshift, bins, header.box_size, table.mesh);
  if (table.growth > 0) text += fmt::format("# GrowthFactor {:.10g}\n", table.growth);
  text += fmt::format("# ShotNoise {:.10g}\n", table.shot_noise);
  text += fmt::format("# {}, commit {}\n# Compiler {}\n# Device {}\n", p.version, p.git_hash, p.compiler, p.device);
  if (!p.configuration.empty()) text += "# Configuration\n" + commented(p.configuration);
  text += fmt::format("# K in radians per {0}, P in ({0})^3, Delta2 = K^3 P / (2 pi^2), Shot = Delta2 of ShotNoise\n",
                      table.length_unit);
  text += fmt::format("#{:>15} {:>16} {:>16} {:>12} {:>16}\n", "K", "Delta2", "P", "ModeCount", "Shot");
  return text;
}

}  // namespace

void write_power_file(const std::string& path, const PowerTable& table, const SnapshotHeader& header,
                      const Provenance& provenance, bool overwrite) {
  if (table.power.size() != table.k.size() || table.modes.size() != table.k.size()) {
    throw Error(fmt::format("cannot write '{}'", path), "the columns of the spectrum differ in length");
  }
  SafeFile file(path, overwrite);
  const auto empty = std::count(table.modes.begin(), table.modes.end(), 0u);
  file.write(comments(table, header, provenance, table.k.size() - static_cast<std::size_t>(empty)));
  for (std::size_t i = 0; i < table.k.size(); ++i) {
    if (table.modes[i] == 0) continue;
    const double k = table.k[i];
    file.write(fmt::format("{:16.9e} {:16.9e} {:16.9e} {:12d} {:16.9e}\n", k, delta2(k, table.power[i]), table.power[i],
                           table.modes[i], delta2(k, table.shot_noise)));
  }
  file.commit();
}

}  // namespace maki
