// How masses become integers on the mesh of a run over several sites.
#pragma once

#include <cstddef>

#include "kernels/mesh/mesh.hpp"
#include "wan/sites/sites.hpp"

namespace maki {

// The unit for the particles of all sites (choose_mass_unit()), alike at all of them: two round trips. Collective over
// the site's ranks. Throws Error as choose_mass_unit() does.
MassUnit mass_unit_of_sites(sites::Sites& sites, const Stream& stream, const MeshOptions& options,
                            const SourceParticle* particles, std::size_t n);

}  // namespace maki
