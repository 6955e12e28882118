// The linear power spectrum of matter at redshift zero, and the transfer functions of cold dark matter behind it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "src/cosmology/cosmology.hpp"

namespace maki {

// Transfer functions of cold dark matter with baryons: the fits of Eisenstein & Hu 1998, ApJ 496, 605.
inline constexpr double kCmbTemperature = 2.7255;  // K

// T(k), 1 as k -> 0; k in h/Mpc. With the acoustic oscillations (their eqs. 2 to 24).
class EisensteinHuTransfer {
 public:
  explicit EisensteinHuTransfer(const CosmologyParameters& parameters);
  double operator()(double k) const;
  double sound_horizon() const { return sound_horizon_; }  // at the drag epoch, Mpc (no h)

 private:
  double pressureless(double q, double alpha, double beta) const;
  double cold_matter(double k, double q) const;
  double baryons(double k, double q) const;

  double hubble_, baryon_fraction_, equality_, sound_horizon_, silk_;  // wave numbers in 1/Mpc
  double alpha_c_, beta_c_, alpha_b_, beta_b_, beta_node_;
};

// T(k) without the oscillations (their eqs. 26 and 28 to 31).
class NoWiggleTransfer {
 public:
  explicit NoWiggleTransfer(const CosmologyParameters& parameters);
  double operator()(double k) const;

 private:
  double shape_, theta2_, sound_horizon_, alpha_;  // Omega0 h, (T/2.7 K)^2, Mpc/h
};

enum class PowerModel {
  kEisensteinHu,          // with acoustic oscillations
  kEisensteinHuNoWiggle,  // without
  kTable,                 // a file of CLASS or CAMB
  kPowerLaw,              // P proportional to k^n
};

struct PowerOptions {
  PowerModel model = PowerModel::kEisensteinHu;
  // Text with two columns or more, of which two are read: k in h/Mpc and P in (Mpc/h)^3, in any order of k; '#' starts
  // a comment. Interpolated in ln P against ln k; below and above its range extrapolated with the slope at its end.
  std::string table_file = {};
  double table_redshift = 0;    // of a table that is not normalised by sigma8
  double power_law_index = -2;  // n, in (-3, 1) so that sigma8 is finite
};

// P(k) up to a factor, (Mpc/h)^3 of h/Mpc: any function between `low` and `high`, a power law below and above.
struct PowerShape {
  std::function<double(double)> at;
  double low, high;
};

class PowerSpectrum {
 public:
  // The amplitude is set by parameters.sigma8: rms linear contrast in top-hat spheres of 8 Mpc/h. With sigma8 = 0 a
  // table keeps its amplitude at its redshift, and is scaled by the growth factor to z = 0; the other models need
  // sigma8. Throws Error on unreadable or invalid tables, sigma8 < 0, a table's redshift together with sigma8, an index
  // out of range, omega_baryon not in [0, omega0), and where sigma8 would be infinite: a table that begins with a slope
  // of -3 or less, or ends with 1 or more.
  PowerSpectrum(const PowerOptions& options, const CosmologyParameters& parameters, const UnitSystem& units);

  // k in 1/length, P in length^3, so that <|delta_k|^2> = P/V for delta(x) = sum_k delta_k exp(ikx).
  double operator()(double k) const;
  // Wave numbers that the spectrum's table covers, 1/length; none where it is not from a table.
  std::optional<std::pair<double, double>> table_range() const;

  // rms linear contrast at z = 0 in top-hat spheres of a radius in length units, of all wave numbers: beyond k = 1e-8
  // and 1e6 h/Mpc an Eisenstein-Hu spectrum counts as a power law, beyond its range a table does.
  double sigma(double radius) const;

 private:
  PowerShape shape_;
  double length_unit_ = 1;  // in Mpc/h
  double amplitude_ = 1;
  bool is_table_;
};

}  // namespace maki
