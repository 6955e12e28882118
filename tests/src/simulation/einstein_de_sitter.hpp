// A universe of matter alone, whose times and factors are powers of a.
#pragma once

#include "src/cosmology/cosmology.hpp"

namespace maki::testing {

inline Timeline einstein_de_sitter() {
  CosmologyParameters parameters;
  parameters.omega0 = 1;
  parameters.omega_lambda = 0;
  return Timeline::comoving(parameters, UnitSystem{});
}

}  // namespace maki::testing
