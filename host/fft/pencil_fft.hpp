// Fourier transforms of one real mesh in place, over many ranks: lines along z, y and x in turn, between them an
// exchange within a row and one within a column of ranks (PencilLayout). One CPU rank alone takes BlockedFft.
//
// Every line is transformed whole by the same plan (fft.hpp), and exchanges only move bits: so the modes are the same
// for any number of ranks.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <vector>

#include "host/comm/communicator.hpp"
#include "host/comm/device_payload.hpp"
#include "kernels/device/algorithms.hpp"
#include "kernels/device/buffer.hpp"
#include "kernels/device/fft.hpp"
#include "kernels/device/stream.hpp"

namespace maki {

// Cells or modes along one axis, first ... end - 1.
struct PencilRange {
  int first = 0, end = 0;
  int count() const { return end > first ? end - first : 0; }
  std::size_t size() const { return static_cast<std::size_t>(count()); }
  bool operator==(const PencilRange&) const = default;
};

// Cells or modes, as ranges of x, y and z.
struct PencilBox {
  std::array<PencilRange, 3> along;
  std::size_t cells() const;
  bool operator==(const PencilBox&) const = default;
};
PencilBox overlap(const PencilBox& a, const PencilBox& b);

// The grid of ranks: rank = row * columns + column.
struct PencilGrid {
  int rows = 1, columns = 1;
  bool operator==(const PencilGrid&) const = default;
};

enum class Pencils { kReal, kZ, kY, kX };  // PencilLayout

// Block `i` of `n` cells in `parts` blocks, whose lengths differ by at most one. Some are empty if n < parts.
PencilRange pencil_block(int n, int parts, int i);

// The pencil decomposition of a mesh of m^3 cells: each rank's part while the mesh is transformed along z, then y, then
// x. Pure functions of the mesh and the number of ranks.
//
// The ranks form a grid of p rows and q columns, rank = row * q + column; ranks beyond p q hold nothing. Each layout
// keeps one axis whole and cuts the two others into even blocks:
//   kReal, kZ  x over rows, y over columns, z whole   lines [x][y][z]:   m reals, or the modes kz = 0 ... m/2
//   kY         x over rows, kz over columns, y whole  lines [x][kz][y]:  complex
//   kX         ky over rows, kz over columns, x whole lines [ky][kz][x]: complex
// So kZ and kY exchange only within a row, kY and kX only within a column.
class PencilLayout {
 public:
  // Chooses a grid of at most `ranks` ranks: the most square one of those whose fullest rank holds at most 5 % more
  // cells than in the best of all. Throws Error unless m is even and >= 2 and ranks >= 1.
  PencilLayout(int m, int ranks);
  // A given grid. Throws Error if it has more places than there are ranks.
  PencilLayout(int m, int ranks, PencilGrid grid);

  int cells() const { return m_; }
  int ranks() const { return ranks_; }
  PencilGrid grid() const { return grid_; }
  int row_of(int rank) const { return rank / grid_.columns; }
  int column_of(int rank) const { return rank % grid_.columns; }
  bool takes_part(int rank) const { return rank < grid_.rows * grid_.columns; }

  // The box of `rank`; empty for ranks outside of the grid.
  PencilBox box(Pencils pencils, int rank) const;
  // Number of lines of `rank`: box().cells() over the length of the whole axis.
  std::size_t lines(Pencils pencils, int rank) const;
  // The axes (0 x, 1 y, 2 z) from the slowest to the one along the lines.
  static std::array<int, 3> order(Pencils pencils);

 private:
  int m_, ranks_;
  PencilGrid grid_;
};

class PencilFft {
 public:
  // Collective over `communicator`, like forward() and backward(). Throws Error as PencilLayout does.
  PencilFft(const Communicator& communicator, int m);
  PencilFft(const Communicator& communicator, const PencilLayout& layout);

  const PencilLayout& layout() const { return layout_; }
  PencilBox cells() const { return layout_.box(Pencils::kReal, rank()); }  // of the real mesh
  PencilBox modes() const { return layout_.box(Pencils::kX, rank()); }     // of its transform
  std::size_t real_row() const { return lines_.real_row(); }               // reals between lines of the real mesh
  std::size_t mode_row() const { return lines_.complex_row(); }            // reals between lines of modes
  std::size_t size() const;  // reals of the local array: enough for each of the layouts; 0 on a rank without a part

  // Transforms cells, as lines [x][y][z] of cells(), real_row() floats apart, to modes, as lines [ky][kz][x] of
  // modes(), mode_row() floats apart; kz = 0 ... m/2, and i means wave number i - m above m/2 along x and y. Signs as
  // in RealFft3d, not normalised. `mesh` holds size() reals and is aligned to 64 bytes. Work on `stream`.
  // Work space: as much as the mesh, and twice that on the host beside a GPU.
  void forward(const Stream& stream, float* mesh);
  void backward(const Stream& stream, float* mesh);

 private:
  using Complex = std::complex<float>;
  int rank() const { return messages_.ranks().rank(); }
  struct Part {
    int peer;
    std::size_t first;  // in the message buffer, complex numbers
    std::size_t cells;
    std::size_t base;  // first number in the mesh
    BoxCopy copy;      // mesh to message, or message to mesh
  };
  // One change of layout: the parts sent to and received from each rank, this rank's own part in both.
  struct Transpose {
    std::vector<Part> out, in;
    bool stays_here;   // no messages: one copy suffices
    bool same_planes;  // both layouts have the same outermost axis
    int tag;
  };
  // The planes of a layout, one for each place along its outermost axis, and a function that transforms the lines of
  // some.
  struct Planes {
    std::size_t count;
    std::function<void(std::size_t first, std::size_t count)> transform;
  };
  Planes planes(const Stream& stream, Pencils pencils, float* mesh, LineTransform way);
  Transpose plan(Pencils from, Pencils to, int tag) const;
  std::vector<Part> parts(Pencils from, Pencils to, bool sending) const;
  std::array<std::size_t, 3> steps(Pencils pencils, const PencilBox& held) const;
  void run(const Stream& stream, const Transpose& transpose, float* from, float* to, const Planes& before,
           const Planes& after);
  void send_and_receive(const Stream& stream, const Transpose& transpose, Complex* out, Complex* in);

  DevicePayload messages_;
  PencilLayout layout_;
  LineFft lines_;
  Transpose z_to_y_, y_to_x_, x_to_y_, y_to_z_;
  DeviceBuffer<float> work_{"fft.work"};  // holds y-pencils, and messages
};

}  // namespace maki
