// The transform of a whole real mesh of m^3 cells on a processor's cores, there and back in place, for work on modes in
// between that needs each of them once: lines along z and y are transformed plane by plane, and those along x of a few
// (ky, kz) go there and back while they are in a core's caches. So a mesh is moved three times instead of nine.
//
// Every line is transformed by the plans of PencilFft: the modes and the mesh have its bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/device/line_fft.hpp"
#include "kernels/device/stream.hpp"

namespace maki {

// Modes as lines [ky][x], ky = first_y ... first_y + count_y - 1, of one kz = z.
struct ModeLines {
  int first_y, count_y, z;
  float* const* values;  // by mesh: complex numbers, lines mode_row() floats apart
};

class BlockedFft {
 public:
  // On a processor, where a plane of modes fits into the place of the plane of cells; the latter where m is a multiple
  // of 8.
  static bool is_for(int m);
  explicit BlockedFft(int m);

  std::size_t mode_row() const { return lines_.complex_row(); }
  std::size_t bytes() const { return buffers_.capacity() * sizeof(float); }  // work space

  // `mesh`: m x m lines [x][y] of real_row() floats as in PencilFft, of which the first m are cells.
  void forward_planes(const Stream& stream, float* mesh);
  // Takes what forward_planes() has made of some meshes. The modes of all of them, as PencilFft has them, are given to
  // `change`, some lines at a time, by several threads at once; then those of the first `back` meshes are transformed
  // back along x, where x is wanted (by x; the rest is of no meaning afterwards).
  void along_x(const Stream& stream, std::span<float* const> meshes, std::size_t back,
               const std::vector<std::uint8_t>& wanted, const std::function<void(const ModeLines&)>& change);
  // The cells of the planes that are wanted.
  void backward_planes(const Stream& stream, float* mesh, const std::vector<std::uint8_t>& wanted);

 private:
  float* buffer(std::size_t floats);  // of this thread
  void make_buffers(std::size_t floats);

  std::size_t m_;
  LineFft<float> lines_;
  DeviceBuffer<float> buffers_{"fft.blocks"};
};

}  // namespace maki
