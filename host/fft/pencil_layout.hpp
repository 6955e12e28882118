// The pencil decomposition of a mesh of m^3 cells: the part of each rank while the mesh is transformed along z, then y,
// then x. Pure functions of the mesh and the number of ranks.
//
// The ranks stand in a grid of p rows and q columns, rank = row * q + column; ranks beyond p q hold nothing. Each
// layout leaves one axis whole and cuts the two others into even blocks:
//   kReal, kZ  x over rows, y over columns, z whole   lines [x][y][z]:   m reals, or the modes kz = 0 ... m/2
//   kY         x over rows, kz over columns, y whole  lines [x][kz][y]:  complex
//   kX         ky over rows, kz over columns, x whole lines [ky][kz][x]: complex
// So kZ and kY exchange within a row only, kY and kX within a column only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace maki {

struct PencilRange {
  int first = 0, end = 0;
  int count() const { return end > first ? end - first : 0; }
  bool operator==(const PencilRange&) const = default;
};

// Cells or modes, as ranges of x, y and z.
struct PencilBox {
  std::array<PencilRange, 3> along;
  std::size_t cells() const;
  bool operator==(const PencilBox&) const = default;
};
PencilBox overlap(const PencilBox& a, const PencilBox& b);

struct PencilGrid {
  int rows = 1, columns = 1;
  bool operator==(const PencilGrid&) const = default;
};

enum class Pencils { kReal, kZ, kY, kX };

// Block `i` of `n` cells in `parts` blocks, whose lengths differ by one at most. Some are empty where n < parts.
PencilRange pencil_block(int n, int parts, int i);

class PencilLayout {
 public:
  // Chooses a grid of at most `ranks` ranks: the one nearest to a square among those whose fullest rank holds at most 5
  // % more than the least possible. Throws Error unless m is even and >= 2 and ranks >= 1.
  PencilLayout(int m, int ranks);
  // A chosen grid. Throws Error where it has more places than there are ranks.
  PencilLayout(int m, int ranks, PencilGrid grid);

  int cells() const { return m_; }
  int ranks() const { return ranks_; }
  PencilGrid grid() const { return grid_; }
  int row_of(int rank) const { return rank / grid_.columns; }
  int column_of(int rank) const { return rank % grid_.columns; }
  bool takes_part(int rank) const { return rank < grid_.rows * grid_.columns; }

  // What `rank` holds; empty for ranks outside of the grid.
  PencilBox box(Pencils pencils, int rank) const;
  // Number of lines of `rank`: box().cells() over the length of the axis that is whole.
  std::size_t lines(Pencils pencils, int rank) const;
  // The axes (0 x, 1 y, 2 z) from the slowest to the one along the lines.
  static std::array<int, 3> order(Pencils pencils);

 private:
  int m_, ranks_;
  PencilGrid grid_;
};

}  // namespace maki
