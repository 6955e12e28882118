// Values on the points of a grid where the particles of these points are.
#pragma once

#include <cstdint>
#include <functional>

#include "host/comm/share.hpp"
#include "src/ic/periodic_grid.hpp"

namespace maki {

// The sites i = (ix n + iy) n + iz whose particles rank `rank` of the grid's ranks holds.
Share sites_of(const PeriodicGrid& grid, int rank);

// Sites `first` and on, all of one line along z.
using SiteVisitor = std::function<void(std::uint64_t first, int count, const double* values)>;

// Visits the values at the sites of this rank's share: each site once, in parallel and in no order. Collective.
void visit_share(const PeriodicGrid& field, const SiteVisitor& visit);

}  // namespace maki
