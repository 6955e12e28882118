// What linear theory expects of a run at the time of a snapshot.
#pragma once

#include <functional>
#include <memory>

#include "src/config/config.hpp"
#include "src/cosmology/mass_function.hpp"

namespace maki {

// The linear spectrum that a configuration gives, grown to the header's time: P in length unit^3 of k in 1/length unit.
// Throws Error where its table cannot be read.
std::function<double(double)> linear_power_of(const Config& config, const SnapshotHeader& header);

// The mass function (Tinker et al. 2008) of that spectrum. Throws Error as above.
std::unique_ptr<const MassFunction> mass_function_of(const Config& config, const SnapshotHeader& header);

}  // namespace maki
