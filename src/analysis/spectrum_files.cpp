#include "src/analysis/spectrum_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numbers>
#include <sstream>

#include "kernels/error.hpp"
#include "src/io/safe_file.hpp"

namespace maki {
namespace {

double delta2(double k, double power) { return k * k * k * power / (2 * std::numbers::pi * std::numbers::pi); }

std::string commented(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) result += "#   " + line + "\n";
  return result;
}

std::string time_and_box(const SnapshotHeader& header, std::size_t bins, int mesh) {
  return fmt::format("# Time {:.10g}\n# Redshift {:.10g}\n# Bins {}\n# BoxSize {:.10g}\n# MeshSize {}\n", header.time,
                     header.redshift, bins, header.box_size, mesh);
}

std::string origin(const Provenance& p) {
  std::string text =
      fmt::format("# {}, commit {}\n# Compiler {}\n# Device {}\n", p.version, p.git_hash, p.compiler, p.device);
  if (!p.configuration.empty()) text += "# Configuration\n" + commented(p.configuration);
  return text;
}

std::string comments(const PowerTable& table, const SnapshotHeader& header, const Provenance& p, std::size_t bins) {
  std::string text = "# Power spectrum of the density contrast, shot noise included\n";
  text += time_and_box(header, bins, table.mesh);
  if (table.growth > 0) text += fmt::format("# GrowthFactor {:.10g}\n", table.growth);
  text += fmt::format("# ShotNoise {:.10g}\n", table.shot_noise);
  text += origin(p);
  text += fmt::format(
      "# K in radians per {0}, P in ({0})^3, Delta2 = K^3 P / (2 pi^2), Shot = Delta2 of ShotNoise, Folding: times that the "
      "box was folded onto the mesh\n# Linear = P of linear theory, NonLinear = P of HALOFIT (Takahashi et al. 2012){1}\n",
      table.length_unit, table.linear.empty() ? ": 0, unknown" : " for this universe");
  text += fmt::format("#{:>15} {:>16} {:>16} {:>12} {:>16} {:>16} {:>16} {:>12} {:>12} {:>8}\n", "K", "Delta2", "P",
                      "ModeCount", "Shot", "Linear", "NonLinear", "P/Linear", "P/NonLinear", "Folding");
  return text;
}

// 0 where the column is missing.
template <class T>
T at(const std::vector<T>& column, std::size_t i, T missing = {}) {
  return column.empty() ? missing : column[i];
}

double ratio(double a, double b) { return b > 0 ? a / b : 0; }

std::string row(const PowerTable& t, std::size_t i) {
  const double k = t.k[i], p = t.power[i], linear = at(t.linear, i), nonlinear = at(t.nonlinear, i);
  return fmt::format("{:16.9e} {:16.9e} {:16.9e} {:12d} {:16.9e} {:16.9e} {:16.9e} {:12.6f} {:12.6f} {:8d}\n", k,
                     delta2(k, p), p, t.modes[i], delta2(k, t.shot_noise), linear, nonlinear, ratio(p, linear),
                     ratio(p, nonlinear), at(t.folding, i, 1));
}

bool fits(std::size_t column, std::size_t bins) { return column == 0 || column == bins; }

}  // namespace

void write_power_file(const std::string& path, const PowerTable& table, const SnapshotHeader& header,
                      const Provenance& provenance, bool overwrite) {
  const std::size_t bins = table.k.size();
  if (table.power.size() != bins || table.modes.size() != bins || !fits(table.linear.size(), bins) ||
      !fits(table.nonlinear.size(), bins) || !fits(table.folding.size(), bins)) {
    throw Error(fmt::format("cannot write '{}'", path), "the columns of the spectrum differ in length");
  }
  SafeFile file(path, overwrite);
  const auto empty = std::count(table.modes.begin(), table.modes.end(), 0u);
  file.write(comments(table, header, provenance, table.k.size() - static_cast<std::size_t>(empty)));
  for (std::size_t i = 0; i < table.k.size(); ++i) {
    if (table.modes[i] > 0) file.write(row(table, i));
  }
  file.commit();
}

void write_cross_power_file(const std::string& path, const CrossTable& table, const SetNames& names,
                            const SnapshotHeader& header, const Provenance& provenance, bool overwrite) {
  const CrossPower& power = table.power;
  SafeFile file(path, overwrite);
  file.write(
      fmt::format("# Power spectra and cross spectrum of two density contrasts, shot noise included\n"
                  "# First: {}\n# Second: {}\n",
                  names.first, names.second));
  file.write(time_and_box(header, power.bins.size(), table.mesh));
  file.write(
      fmt::format("# ShotNoise1 {:.10g}\n# ShotNoise2 {:.10g}\n", power.shot_noise_first, power.shot_noise_second));
  file.write(origin(provenance));
  file.write(
      fmt::format("# K in radians per {0}; P1, P2 of the sets and P12 = <Re(a conj(b))> in ({0})^3; R = P12 / "
                  "sqrt(P1 P2); Folding: times that the box was folded onto the mesh\n",
                  table.length_unit));
  file.write(fmt::format("#{:>15} {:>16} {:>16} {:>16} {:>12} {:>12} {:>8}\n", "K", "P1", "P2", "P12", "R", "ModeCount",
                         "Folding"));
  for (const CrossBin& bin : power.bins)
    file.write(fmt::format("{:16.9e} {:16.9e} {:16.9e} {:16.9e} {:12.9f} {:12d} {:8d}\n", bin.k, bin.first, bin.second,
                           bin.cross, bin.correlation(), bin.modes, bin.folding));
  file.commit();
}

namespace {

std::string triangles(const TriangleMean& mean, double tree) {
  return fmt::format(" {:16.9e} {:16.9e} {:16.9e} {:16.9e}", mean.triangles, mean.bispectrum, mean.shot_noise, tree);
}

std::string triangle_names(const char* kind) {
  std::string names;
  for (const char* name : {"Triangles", "B", "Shot", "Tree"})
    names += fmt::format(" {:>16}", fmt::format("{}{}", kind, name));
  return names;
}

}  // namespace

void write_bispectrum_file(const std::string& path, const BispectrumTable& table, const SnapshotHeader& header,
                           const Provenance& provenance, bool overwrite) {
  const MeasuredBispectrum& measured = table.measured;
  SafeFile file(path, overwrite);
  file.write("# Bispectrum of the density contrast, shot noise included\n");
  file.write(time_and_box(header, measured.bins.size(), table.mesh));
  file.write(fmt::format("# ShotNoise {:.10g}\n# LongSide {:.10g}\n", measured.shot_noise,
                         measured.bins.at(measured.long_bin).k));
  file.write(origin(provenance));
  file.write(fmt::format(
      "# K in radians per {0} and P in ({0})^3: of the shell; B in ({0})^6: of equilateral triangles (Eq) in the shell, and of "
      "squeezed ones (Sq) with the third side in the shell at LongSide\n# Shot: shot noise in B; Tree: B at tree level{1}\n",
      table.length_unit, table.equilateral_tree.empty() ? ": 0, unknown" : " of this universe"));
  file.write(fmt::format("#{:>15} {:>16}{}{}\n", "K", "P", triangle_names("Eq"), triangle_names("Sq")));
  for (std::size_t i = 0; i < measured.bins.size(); ++i) {
    const BispectrumBin& bin = measured.bins[i];
    file.write(fmt::format("{:16.9e} {:16.9e}{}{}\n", bin.k, bin.power,
                           triangles(bin.equilateral, at(table.equilateral_tree, i)),
                           triangles(bin.squeezed, at(table.squeezed_tree, i))));
  }
  file.commit();
}

}  // namespace maki
