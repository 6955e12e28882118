// The universe of Planck 2015 (TT,TE,EE+lowP+lensing+ext) that tests of spectra share.
#pragma once

#include "src/cosmology/cosmology.hpp"

namespace maki::test {

inline CosmologyParameters planck() {
  CosmologyParameters p;
  p.omega0 = 0.3089;
  p.omega_lambda = 0.6911;
  p.omega_baryon = 0.0486;
  p.hubble = 0.6774;
  p.n_s = 0.9667;
  p.sigma8 = 0.8159;
  return p;
}

}  // namespace maki::test
