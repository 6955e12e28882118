// Modes of one grid where another one needs them.
#pragma once

#include <functional>

#include "src/ic/periodic_grid.hpp"

namespace maki {

// The modes (mx, my, mz) for all mz of a range.
using ModeRowVisitor = std::function<void(int mx, int my, const PencilRange& mz, const PeriodicGrid::Complex* values)>;

// Visits the modes of `source` that both grids have below their Nyquist planes, on the rank that holds them in
// `target`: by rows, each mode once, rows in parallel and in no order. Both grids are over the same ranks. Collective.
void visit_common_modes(const PeriodicGrid& source, const PeriodicGrid& target, const ModeRowVisitor& visit);

}  // namespace maki
