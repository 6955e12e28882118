#include <fmt/format.h>

#include <cmath>
#include <map>
#include <numbers>

#include "src/groups/catalogue.hpp"
#include "src/io/safe_file.hpp"

namespace maki {
namespace {

constexpr double kBin = 0.2;                         // in log10(M)
constexpr double kSolarMass = 1.988409870698051e33;  // g

std::string comments(const GroupCatalogue& catalogue, const Provenance& p, bool expected) {
  const SnapshotHeader& header = catalogue.header;
  const char* over_h = header.units.with_h ? "/h" : "";
  std::string text = "# Mass function of groups of friends, by the mass within 200 times the mean density\n";
  text += fmt::format("# Time {:.10g}\n# Redshift {:.10g}\n# BoxSize {:.10g}\n# Particles {}\n", header.time,
                      header.redshift, header.box_size, catalogue.particles);
  text += fmt::format("# LinkingLength {:.10g}\n# MinimumLength {}\n# Groups {}\n", catalogue.linking_length,
                      catalogue.minimum, catalogue.groups.size());
  text += fmt::format("# {}, commit {}\n# Compiler {}\n# Device {}\n", p.version, p.git_hash, p.compiler, p.device);
  text += fmt::format(
      "# log10(M) of the middle of a bin, M in solar masses{}; dn/dlnM per cubed unit of length, {:.6g} cm{}\n", over_h,
      header.units.length_cgs, over_h);
  text += expected ? "# Tinker08: mean over the bin of Tinker et al. 2008, from the linear power spectrum\n"
                   : "# Tinker08: 0, as the linear power spectrum is not known\n";
  text += fmt::format("#{:>11} {:>14} {:>14} {:>14} {:>8}\n", "log10(M)", "dn/dlnM", "Error", "Tinker08", "Groups");
  return text;
}

// The mean over a bin about a mass, in ln M, by Simpson's rule.
double mean_over_bin(const std::function<double(double)>& function, double mass) {
  const double edge = std::pow(10, kBin / 2);
  return (function(mass / edge) + 4 * function(mass) + function(mass * edge)) / 6;
}

}  // namespace

void write_mass_function(const std::string& path, const GroupCatalogue& catalogue,
                         const std::function<double(double)>& expected, const Provenance& provenance, bool overwrite) {
  const double unit = catalogue.header.units.mass_cgs / kSolarMass;
  std::map<int, std::uint64_t> counts;
  for (const FofGroup& group : catalogue.groups) {
    const double mass = group.spheres[kMean200].mass;
    if (mass > 0) ++counts[static_cast<int>(std::floor(std::log10(mass * unit) / kBin))];
  }
  SafeFile file(path, overwrite);
  file.write(comments(catalogue, provenance, static_cast<bool>(expected)));
  const double volume = std::pow(catalogue.header.box_size, 3), width = kBin * std::numbers::ln10;
  for (const auto& [bin, count] : counts) {
    const double middle = (bin + 0.5) * kBin, number = static_cast<double>(count);
    const double theory = expected ? mean_over_bin(expected, std::pow(10, middle) / unit) : 0;
    file.write(fmt::format("{:12.3f} {:14.6e} {:14.6e} {:14.6e} {:8d}\n", middle, number / (volume * width),
                           std::sqrt(number) / (volume * width), theory, count));
  }
  file.commit();
}

}  // namespace maki
