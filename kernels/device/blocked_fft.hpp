// The transform of a real mesh of m^3 cells on the CPU, in blocks that stay in a core's caches.
//
// Lines along z and y are transformed plane by plane. Lines along x, a few (ky, kz) at a time, go forward, through one
// pass over the modes (the influence function) and back: so a mesh is moved through memory three times instead of nine.
// Every line is transformed by the plans of LineFft: cells and modes have the same bits as with PencilFft.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/device/fft.hpp"
#include "kernels/device/stream.hpp"

namespace maki {

// Modes with one kz, as lines [ky][kx], ky = first_y ... first_y + count_y - 1. The arrays are work space.
struct ModeLines {
  int first_y, count_y, z;  // z: kz
  float* const* values;     // by mesh: complex numbers, lines mode_row() floats apart
};

class BlockedFft {
 public:
  explicit BlockedFft(int m);  // throws Error as even_cells()

  // Layouts of a mesh, m planes of plane() floats each:
  //   cells                    [x][y][z]     rows of m reals, real_row() floats apart
  //   after forward_planes()   [x][kz][ky]   rows of m complex numbers, mode_row() floats apart, kz = 0 ... m/2
  //   after forward()          [ky][kz][kx]  likewise
  std::size_t real_row() const { return lines_.real_row(); }
  std::size_t mode_row() const { return lines_.complex_row(); }
  std::size_t lines() const { return lines_of_plane_; }  // real_row()s in a plane, at least m
  static std::size_t lines(int m);
  std::size_t plane() const { return real_row() * lines(); }
  std::size_t size() const { return plane() * m_; }  // floats of a mesh, aligned to 64 bytes
  static double floats(int m);                       // size(), for estimates
  static double work_bytes(int m);                   // of work space at most, for estimates

  // Signs as in RealFft3d; not normalised.
  void forward(const Stream& stream, float* mesh);
  void backward(const Stream& stream, float* mesh);

  // A convolution in three steps: forward_planes(), along_x(), backward_planes(). The first transforms along z and y.
  void forward_planes(const Stream& stream, float* mesh);
  // Transforms meshes from forward_planes() along x and passes the modes of all of them to `change`, some lines at a
  // time, on several threads at once. Then transforms the first `back` meshes back along x. wanted[x] = 1 for planes
  // that are needed; the others are undefined afterwards.
  void along_x(const Stream& stream, std::span<float* const> meshes, std::size_t back,
               const std::vector<std::uint8_t>& wanted, const std::function<void(const ModeLines&)>& change);
  // Transforms the wanted planes back along y and z, to cells.
  void backward_planes(const Stream& stream, float* mesh, const std::vector<std::uint8_t>& wanted);

 private:
  float* buffer(std::size_t floats);  // of this thread
  void make_buffers(std::size_t floats);

  std::size_t m_;
  LineFft lines_;
  std::size_t lines_of_plane_;
  DeviceBuffer<float> buffers_{"fft.blocks"};
};

}  // namespace maki
