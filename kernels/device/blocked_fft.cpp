#include "kernels/device/blocked_fft.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>

#include "kernels/device/algorithms.hpp"

namespace maki {
namespace {

using Complex = std::complex<float>;
constexpr std::size_t kBlockFloats = std::size_t{1} << 16;  // lines along x processed together: 256 KiB

Complex* modes(float* values) { return reinterpret_cast<Complex*>(values); }

// Lines along x that are transformed together, in whole cache lines of the lines along y.
std::size_t rows_together(std::size_t m, std::size_t row) {
  return std::min(m, std::max<std::size_t>(8, kBlockFloats / row / 8 * 8));
}

}  // namespace

BlockedFft::BlockedFft(int m) : m_(static_cast<std::size_t>(even_cells(m))), lines_(m), lines_of_plane_(lines(m)) {}

// Rows of cells or of modes, whichever take more.
std::size_t BlockedFft::lines(int m) {
  const auto cells = static_cast<std::size_t>(m);
  const std::size_t row = LineFft::real_row(cells), of_modes = LineFft::complex_row(cells) * (cells / 2 + 1);
  return std::max(cells, (of_modes + row - 1) / row);
}

double BlockedFft::floats(int m) {
  return static_cast<double>(LineFft::real_row(static_cast<std::size_t>(m)) * lines(m)) * m;
}

double BlockedFft::work_bytes(int m) {
  const auto cells = static_cast<std::size_t>(m);
  const std::size_t row = LineFft::complex_row(cells);
  const std::size_t two_planes = 2 * std::max(LineFft::real_row(cells) * lines(m), row * cells);
  return static_cast<double>(sizeof(float) * std::max(two_planes, 3 * row * rows_together(cells, row))) *
         omp_get_max_threads();
}

void BlockedFft::make_buffers(std::size_t floats) {
  buffers_.resize(floats * static_cast<std::size_t>(omp_get_max_threads()));
}
float* BlockedFft::buffer(std::size_t floats) {
  return buffers_.data() + floats * static_cast<std::size_t>(omp_get_thread_num());
}

// Transforms a plane's lines [y][z] of cells into lines [kz][y] of modes, in its memory.
void BlockedFft::forward_planes(const Stream& stream, float* mesh) {
  const std::size_t half = m_ / 2 + 1, row = real_row(), size = plane(), mode_step = mode_row() / 2;
  make_buffers(2 * size);
#pragma omp parallel for schedule(static)
  for (std::size_t x = 0; x < m_; ++x) {
    float *const plane = mesh + size * x, *const along_z = buffer(2 * size), *const along_y = along_z + size;
    lines_.transform(stream, LineTransform::kRealToModes, plane, along_z, m_);
    copy_box(stream, {{1, half, m_}, {0, 1, row / 2}, {0, mode_step, 1}}, modes(along_z), modes(along_y));
    lines_.transform(stream, LineTransform::kForward, along_y, plane, half);
  }
}

void BlockedFft::backward_planes(const Stream& stream, float* mesh, const std::vector<std::uint8_t>& wanted) {
  const std::size_t half = m_ / 2 + 1, row = real_row(), size = plane(), mode_step = mode_row() / 2;
  make_buffers(2 * size);
#pragma omp parallel for schedule(dynamic, 1)
  for (std::size_t x = 0; x < m_; ++x) {
    if (!wanted[x]) continue;
    float *const plane = mesh + size * x, *const along_z = buffer(2 * size), *const along_y = along_z + size;
    lines_.transform(stream, LineTransform::kBackward, plane, along_y, half);
    copy_box(stream, {{1, m_, half}, {0, 1, mode_step}, {0, row / 2, 1}}, modes(along_y), modes(along_z));
    lines_.transform(stream, LineTransform::kModesToReal, along_z, plane, m_);
  }
}

void BlockedFft::along_x(const Stream& stream, std::span<float* const> meshes, std::size_t back,
                         const std::vector<std::uint8_t>& wanted, const std::function<void(const ModeLines&)>& change) {
  const std::size_t half = m_ / 2 + 1, plane = this->plane() / 2, row = mode_row();
  const std::size_t rows = rows_together(m_, row);
  std::vector<std::array<std::size_t, 2>> runs;  // first and count of wanted planes
  for (std::size_t x = 0; x < m_; ++x) {
    if (!wanted[x]) continue;
    if (x == 0 || !wanted[x - 1]) runs.push_back({x, 0});
    ++runs.back()[1];
  }
  const std::size_t size = rows * row, all = (meshes.size() + 1) * size;
  make_buffers(all);
#pragma omp parallel for collapse(2) schedule(dynamic, 1)
  for (std::size_t z = 0; z < half; ++z) {
    for (std::size_t y = 0; y < m_; y += rows) {
      const std::size_t count = std::min(rows, m_ - y), first = z * (row / 2) + y;
      float* const before = buffer(all);
      std::array<float*, 2> values{};
      for (std::size_t i = 0; i < meshes.size(); ++i) {
        values[i] = before + (i + 1) * size;
        copy_box(stream, {{1, count, m_}, {0, 1, plane}, {0, row / 2, 1}}, modes(meshes[i]) + first, modes(before));
        lines_.transform(stream, LineTransform::kForward, before, values[i], count);
      }
      change({static_cast<int>(y), static_cast<int>(count), static_cast<int>(z), values.data()});
      for (std::size_t i = 0; i < back; ++i) {
        lines_.transform(stream, LineTransform::kBackward, values[i], before, count);
        for (const auto& [x, planes] : runs)
          copy_box(stream, {{1, planes, count}, {0, 1, row / 2}, {0, plane, 1}}, modes(before) + x,
                   modes(meshes[i]) + plane * x + first);
      }
    }
  }
}

// All lines along x of one kz at a time: their memory in the planes x is that of the rows kz of all planes ky.
void BlockedFft::forward(const Stream& stream, float* mesh) {
  forward_planes(stream, mesh);
  const std::size_t row = mode_row() / 2, size = mode_row() * m_;
  make_buffers(2 * size);
#pragma omp parallel for schedule(static)
  for (std::size_t z = 0; z < m_ / 2 + 1; ++z) {
    float *const before = buffer(2 * size), *const after = before + size;
    copy_box(stream, {{1, m_, m_}, {0, 1, plane() / 2}, {0, row, 1}}, modes(mesh) + z * row, modes(before));
    lines_.transform(stream, LineTransform::kForward, before, after, m_);
    for (std::size_t y = 0; y < m_; ++y)
      std::memcpy(mesh + plane() * y + mode_row() * z, after + mode_row() * y, 2 * m_ * sizeof(float));
  }
}

void BlockedFft::backward(const Stream& stream, float* mesh) {
  const std::size_t row = mode_row() / 2, size = mode_row() * m_;
  make_buffers(2 * size);
#pragma omp parallel for schedule(static)
  for (std::size_t z = 0; z < m_ / 2 + 1; ++z) {
    float *const before = buffer(2 * size), *const after = before + size;
    for (std::size_t y = 0; y < m_; ++y)
      std::memcpy(before + mode_row() * y, mesh + plane() * y + mode_row() * z, 2 * m_ * sizeof(float));
    lines_.transform(stream, LineTransform::kBackward, before, after, m_);
    copy_box(stream, {{1, m_, m_}, {0, 1, row}, {0, plane() / 2, 1}}, modes(after), modes(mesh) + z * row);
  }
  backward_planes(stream, mesh, std::vector<std::uint8_t>(m_, 1));
}

}  // namespace maki
