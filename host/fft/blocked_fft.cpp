#include "host/fft/pencil_fft.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <complex>
#include <string>

#include "kernels/device/algorithms.hpp"
#include "kernels/device/device.hpp"

namespace maki {
namespace {

using Complex = std::complex<float>;
constexpr std::size_t kBlockFloats = std::size_t{1} << 16;  // lines along x processed together: 256 KiB

Complex* modes(float* values) { return reinterpret_cast<Complex*>(values); }

}  // namespace

bool BlockedFft::is_for(int m) {
  if (std::string(backend_name()) != "cpu" || m < 2 || m % 2) return false;
  const LineFft lines(m);
  const auto cells = static_cast<std::size_t>(m);
  return lines.complex_row() * (cells / 2 + 1) <= lines.real_row() * cells;
}

BlockedFft::BlockedFft(int m) : m_(static_cast<std::size_t>(m)), lines_(m) {}

void BlockedFft::make_buffers(std::size_t floats) {
  buffers_.resize(floats * static_cast<std::size_t>(omp_get_max_threads()));
}
float* BlockedFft::buffer(std::size_t floats) {
  return buffers_.data() + floats * static_cast<std::size_t>(omp_get_thread_num());
}

// Transforms a plane's lines [y][z] of cells into lines [kz][y] of modes, in its memory.
void BlockedFft::forward_planes(const Stream& stream, float* mesh) {
  const std::size_t half = m_ / 2 + 1, row = lines_.real_row(), size = row * m_, mode_step = mode_row() / 2;
  make_buffers(2 * size);
#pragma omp parallel for schedule(static)
  for (std::size_t x = 0; x < m_; ++x) {
    float *const plane = mesh + size * x, *const along_z = buffer(2 * size), *const along_y = along_z + size;
    lines_.real_to_modes(stream, plane, along_z, m_);
    copy_box(stream, {{1, half, m_}, {0, 1, row / 2}, {0, mode_step, 1}}, modes(along_z), modes(along_y));
    lines_.forward(stream, along_y, plane, half);
  }
}

void BlockedFft::backward_planes(const Stream& stream, float* mesh, const std::vector<std::uint8_t>& wanted) {
  const std::size_t half = m_ / 2 + 1, row = lines_.real_row(), size = row * m_, mode_step = mode_row() / 2;
  make_buffers(2 * size);
#pragma omp parallel for schedule(dynamic, 1)
  for (std::size_t x = 0; x < m_; ++x) {
    if (!wanted[x]) continue;
    float *const plane = mesh + size * x, *const along_z = buffer(2 * size), *const along_y = along_z + size;
    lines_.backward(stream, plane, along_y, half);
    copy_box(stream, {{1, m_, half}, {0, 1, mode_step}, {0, row / 2, 1}}, modes(along_y), modes(along_z));
    lines_.modes_to_real(stream, along_z, plane, m_);
  }
}

void BlockedFft::along_x(const Stream& stream, std::span<float* const> meshes, std::size_t back,
                         const std::vector<std::uint8_t>& wanted, const std::function<void(const ModeLines&)>& change) {
  const std::size_t half = m_ / 2 + 1, plane = lines_.real_row() * m_ / 2, row = mode_row();
  // Lines along x in whole cache lines of the lines along y.
  const std::size_t rows = std::min(m_, std::max<std::size_t>(8, kBlockFloats / row / 8 * 8));
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
        lines_.forward(stream, before, values[i], count);
      }
      change({static_cast<int>(y), static_cast<int>(count), static_cast<int>(z), values.data()});
      for (std::size_t i = 0; i < back; ++i) {
        lines_.backward(stream, values[i], before, count);
        for (const auto& [x, planes] : runs)
          copy_box(stream, {{1, planes, count}, {0, 1, row / 2}, {0, plane, 1}}, modes(before) + x,
                   modes(meshes[i]) + plane * x + first);
      }
    }
  }
}

}  // namespace maki
