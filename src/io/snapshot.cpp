#include "src/io/snapshot.hpp"

#include <fmt/format.h>

namespace maki {

namespace {
// CODATA 2018, cm^3 g^-1 s^-2. GADGET uses 6.6738e-8: at the same Omega0 and box its files hold masses that are
// 7.5e-5 larger than ours, which changes growth by far less than any tolerance here. The default mass unit is the
// IAU 2015 nominal GM_sun divided by this value. A file that states GravityConstantInternal keeps it.
constexpr double kNewtonCgs = 6.67430e-8;
}  // namespace

double UnitSystem::gravitational_constant() const {
  return kNewtonCgs * mass_cgs / (length_cgs * velocity_cgs * velocity_cgs);
}

std::string text_of(const ForceError& error) {
  return fmt::format(
      "{:.2g} of the rms force; relative to each particle's force {:.2g} (median), {:.2g} (99 %); {} particles",
      error.rms, error.median, error.percentile_99, error.targets);
}

}  // namespace maki
