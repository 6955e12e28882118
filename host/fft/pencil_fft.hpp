// The Fourier transform of one real mesh over many ranks, in place: lines along z, y and x in turn, with an exchange
// within a row and one within a column of ranks between (pencil_layout.hpp).
//
// Every line is transformed whole by the same plan (fft.hpp), and exchanges move bits: so the modes are the same
// for any number of ranks.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <functional>
#include <vector>

#include "host/comm/communicator.hpp"
#include "host/comm/device_payload.hpp"
#include "host/fft/pencil_layout.hpp"
#include "kernels/device/box_copy.hpp"
#include "kernels/device/buffer.hpp"
#include "kernels/device/fft.hpp"
#include "kernels/device/stream.hpp"

namespace maki {

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
  std::size_t size() const;   // reals of the local array: enough for each of the layouts; 0 on a rank without a part
  std::size_t bytes() const;  // work space: as much as the mesh, and twice that on the host beside a GPU

  // Cells as lines [x][y][z] of cells(), real_row() floats apart, become modes as lines [ky][kz][x] of modes(),
  // mode_row() floats apart; kz = 0 ... m/2, and i means wave number i - m above m/2 along x and y. Signs as in
  // RealFft3d, not normalised. `mesh` holds size() reals and is aligned to 64 bytes. Work on `stream`.
  void forward(const Stream& stream, float* mesh);
  void backward(const Stream& stream, float* mesh);

  // What this rank has sent to others so far.
  DevicePayload::Traffic traffic() const { return messages_.traffic(); }

 private:
  using Complex = std::complex<float>;
  int rank() const { return messages_.ranks().rank(); }
  struct Part {
    int peer;
    std::size_t first;  // in the buffer of messages, complex numbers
    std::size_t cells;
    std::size_t base;  // first number in the mesh
    BoxCopy copy;      // mesh to message, or message to mesh
  };
  // One change of layout: what goes to whom and what comes from whom; this rank's own part is in both.
  struct Transpose {
    std::vector<Part> out, in;
    bool stays_here;   // nothing is sent or received: one copy does
    bool same_planes;  // both layouts have the same outermost axis
    int tag;
  };
  // The planes of a layout, one for each place along its outermost axis, and what transforms the lines of some of them.
  struct Planes {
    std::size_t count;
    std::function<void(std::size_t first, std::size_t count)> transform;
  };
  using Transform = void (LineFft::*)(const Stream&, float*, std::size_t);
  Planes planes(const Stream& stream, Pencils pencils, float* mesh, Transform transform);
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
