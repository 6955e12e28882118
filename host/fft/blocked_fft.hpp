// The transform of a whole real mesh of m^3 cells on the CPU, forward and back in place, with one pass over the modes
// in between (the influence function). Lines along z and y are transformed plane by plane; lines along x, a few (ky,
// kz) at a time, go forward, through the pass and back while they are in a core's caches. So a mesh is moved three
// times instead of nine.
//
// Every line is transformed by the plans of PencilFft: modes and mesh are the same bits as with PencilFft.
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

// Modes as lines [ky][x], ky = first_y ... first_y + count_y - 1, of one kz = z.
struct ModeLines {
  int first_y, count_y, z;
  float* const* values;  // by mesh: complex numbers, lines mode_row() floats apart
};

class BlockedFft {
 public:
  // Whether this is the CPU backend and a plane of modes fits into the memory of a plane of cells, as for multiples of
  // 8.
  static bool is_for(int m);
  explicit BlockedFft(int m);

  std::size_t mode_row() const { return lines_.complex_row(); }
  std::size_t bytes() const { return buffers_.capacity() * sizeof(float); }  // work space

  // Transforms cells along z and y. `mesh`: m x m lines [x][y] of real_row() floats as in PencilFft, the first m of
  // them cells.
  void forward_planes(const Stream& stream, float* mesh);
  // Transforms meshes from forward_planes() along x, and gives the modes of all of them (as PencilFft has them) to
  // `change`, some lines at a time, on several threads at once; then transforms the first `back` meshes back along x.
  // `wanted`, by x: 1 for planes that are needed, the others are undefined afterwards.
  void along_x(const Stream& stream, std::span<float* const> meshes, std::size_t back,
               const std::vector<std::uint8_t>& wanted, const std::function<void(const ModeLines&)>& change);
  // Transforms the wanted planes back along y and z, to cells.
  void backward_planes(const Stream& stream, float* mesh, const std::vector<std::uint8_t>& wanted);

 private:
  float* buffer(std::size_t floats);  // of this thread
  void make_buffers(std::size_t floats);

  std::size_t m_;
  LineFft lines_;
  DeviceBuffer<float> buffers_{"fft.blocks"};
};

}  // namespace maki
