// Theory for a run at the time of a snapshot, from the linear spectrum of its configuration.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "src/config/config.hpp"
#include "src/cosmology/nonlinear.hpp"

namespace maki {

// P in length unit^3 of k in 1/length unit; functions are empty where unknown.
struct PowerTheory {
  std::function<double(double)> linear;
  std::function<double(double)> nonlinear;  // HALOFIT (src/cosmology/nonlinear.hpp)
};

// The linear spectrum of a configuration, grown to the header's time, and its non-linear spectrum. Throws Error where
// its table cannot be read.
PowerTheory power_theory_of(const Config& config, const SnapshotHeader& header);

// The mass function (Tinker et al. 2008) of that spectrum. Throws Error as above.
std::unique_ptr<const MassFunction> mass_function_of(const Config& config, const SnapshotHeader& header);

// The configuration with the linear spectrum of a snapshot's particles: the one in the file `config`, or if that is
// empty the one of the run that wrote the snapshot, if the run made its initial conditions itself. Throws Error where a
// configuration cannot be read or is not of a cosmological run.
std::optional<Config> spectrum_config(const std::string& config, const std::string& snapshot);

// The theory for a snapshot by spectrum_config(). Without `config` it is optional: where there is none, `say` gets the
// reason. Throws Error where `config` is unusable.
PowerTheory power_theory_of_file(const std::string& config, const std::string& snapshot, const SnapshotHeader& header,
                                 const std::function<void(const std::string&)>& say);

}  // namespace maki
