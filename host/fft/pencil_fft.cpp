#include "host/fft/pencil_fft.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <string>

#include "kernels/device/algorithms.hpp"
#include "kernels/device/device.hpp"
#include "kernels/error.hpp"

namespace maki {
namespace {

constexpr double kMostLoad = 1.05;  // load of the fullest rank, over the least possible, that a squarer grid may have

void check(int m, int ranks) {
  even_cells(m);
  if (ranks < 1) throw Error("a mesh over " + std::to_string(ranks) + " ranks", "at least one is needed", "add ranks");
}

// Numbers that the fullest rank transforms in all three layouts.
double fullest(int m, PencilGrid grid) {
  const auto largest = [](int n, int parts) { return double((n + parts - 1) / parts); };
  const int modes = m / 2 + 1;
  const double x = largest(m, grid.rows), y = largest(m, grid.columns), kz = largest(modes, grid.columns);
  return x * y * modes + 2 * x * kz * m;
}

PencilGrid choose_grid(int m, int ranks) {
  double least = fullest(m, {1, 1});
  for (int p = 1; p <= std::min(ranks, m); ++p)
    for (int q = 1; q <= std::min(ranks / p, m); ++q) least = std::min(least, fullest(m, {p, q}));
  PencilGrid best{1, 1};
  double best_skew = -1, best_load = 0;
  for (int p = 1; p <= std::min(ranks, m); ++p) {
    for (int q = 1; q <= std::min(ranks / p, m); ++q) {
      const double load = fullest(m, {p, q});
      const double skew = std::abs(std::log(double(p) / q));
      if (load > kMostLoad * least) continue;
      if (best_skew >= 0 && (skew > best_skew || (skew == best_skew && load >= best_load))) continue;
      best = {p, q};
      best_skew = skew;
      best_load = load;
    }
  }
  return best;
}

using Complex = std::complex<float>;

}  // namespace

std::size_t PencilBox::cells() const {
  std::size_t product = 1;
  for (const PencilRange& range : along) product *= range.size();
  return product;
}

PencilBox overlap(const PencilBox& a, const PencilBox& b) {
  PencilBox common;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    common.along[axis].first = std::max(a.along[axis].first, b.along[axis].first);
    common.along[axis].end = std::min(a.along[axis].end, b.along[axis].end);
  }
  return common;
}

PencilRange pencil_block(int n, int parts, int i) {
  const auto begin = [&](long long k) { return static_cast<int>(k * n / parts); };
  return {begin(i), begin(i + 1)};
}

PencilLayout::PencilLayout(int m, int ranks) : m_(m), ranks_(ranks) {
  check(m, ranks);
  grid_ = choose_grid(m, ranks);
}

PencilLayout::PencilLayout(int m, int ranks, PencilGrid grid) : m_(m), ranks_(ranks), grid_(grid) {
  check(m, ranks);
  if (grid.rows < 1 || grid.columns < 1 || grid.rows > ranks / grid.columns)
    throw Error("a grid of " + std::to_string(grid.rows) + " x " + std::to_string(grid.columns) + " ranks",
                "there are " + std::to_string(ranks), "choose one that they can fill");
}

PencilBox PencilLayout::box(Pencils pencils, int rank) const {
  if (!takes_part(rank)) return {};
  const int modes = m_ / 2 + 1;
  const PencilRange whole{0, m_};
  const PencilRange row = pencil_block(m_, grid_.rows, row_of(rank));
  const PencilRange column = pencil_block(m_, grid_.columns, column_of(rank));
  const PencilRange mode_column = pencil_block(modes, grid_.columns, column_of(rank));
  switch (pencils) {
    case Pencils::kReal: return {{row, column, whole}};
    case Pencils::kZ: return {{row, column, {0, modes}}};
    case Pencils::kY: return {{row, whole, mode_column}};
    case Pencils::kX: return {{whole, row, mode_column}};
  }
  return {};
}

std::array<int, 3> PencilLayout::order(Pencils pencils) {
  switch (pencils) {
    case Pencils::kY: return {0, 2, 1};
    case Pencils::kX: return {1, 2, 0};
    default: return {0, 1, 2};
  }
}

std::size_t PencilLayout::lines(Pencils pencils, int rank) const {
  const PencilBox held = box(pencils, rank);
  const std::array<int, 3> axes = order(pencils);
  return held.along[axes[0]].size() * held.along[axes[1]].size();
}

PencilFft::PencilFft(const Communicator& communicator, int m)
    : PencilFft(communicator, PencilLayout(m, communicator.size())) {}

PencilFft::PencilFft(const Communicator& communicator, const PencilLayout& layout)
    : messages_(communicator), layout_(layout), lines_(layout.cells()) {
  z_to_y_ = plan(Pencils::kZ, Pencils::kY, 0);
  y_to_x_ = plan(Pencils::kY, Pencils::kX, 1);
  x_to_y_ = plan(Pencils::kX, Pencils::kY, 2);
  y_to_z_ = plan(Pencils::kY, Pencils::kZ, 3);
}

std::size_t PencilFft::size() const {
  const std::size_t complex_lines =
      std::max(lines_.padded(layout_.lines(Pencils::kY, rank())), lines_.padded(layout_.lines(Pencils::kX, rank())));
  return std::max(real_row() * lines_.padded(layout_.lines(Pencils::kReal, rank())), mode_row() * complex_lines);
}

// Complex numbers from one cell to the next along x, y and z.
std::array<std::size_t, 3> PencilFft::steps(Pencils pencils, const PencilBox& held) const {
  const std::array<int, 3> axes = PencilLayout::order(pencils);
  std::array<std::size_t, 3> step;
  step[axes[2]] = 1;
  step[axes[1]] = (pencils == Pencils::kZ ? real_row() : mode_row()) / 2;
  step[axes[0]] = step[axes[1]] * held.along[axes[1]].size();
  return step;
}

// Messages are in the receiver's layout: the sender transposes.
auto PencilFft::parts(Pencils from, Pencils to, bool sending) const -> std::vector<Part> {
  const Pencils here = sending ? from : to, there = sending ? to : from;
  const PencilBox held = layout_.box(here, rank());
  const std::array<std::size_t, 3> step = steps(here, held);
  const std::array<int, 3> axes = PencilLayout::order(to);
  const PencilGrid grid = layout_.grid();
  const bool in_row = from == Pencils::kZ || to == Pencils::kZ;
  std::vector<Part> found;
  std::size_t first = 0;
  for (int i = 0; layout_.takes_part(rank()) && i < (in_row ? grid.columns : grid.rows); ++i) {
    const int peer = in_row ? layout_.row_of(rank()) * grid.columns + i : i * grid.columns + layout_.column_of(rank());
    const PencilBox common = overlap(held, layout_.box(there, peer));
    if (common.cells() == 0) continue;
    Part part{peer, first, common.cells(), 0, {}};
    std::array<std::size_t, 3> mesh_step, message_step;
    for (std::size_t a = 0; a < 3; ++a) {
      const auto axis = static_cast<std::size_t>(axes[a]);
      part.copy.count[a] = common.along[axis].size();
      mesh_step[a] = step[axis];
      part.base += step[axis] * static_cast<std::size_t>(common.along[axis].first - held.along[axis].first);
    }
    message_step = {part.copy.count[1] * part.copy.count[2], part.copy.count[2], 1};
    part.copy.from_step = sending ? mesh_step : message_step;
    part.copy.to_step = sending ? message_step : mesh_step;
    found.push_back(part);
    first += part.cells;
  }
  return found;
}

auto PencilFft::plan(Pencils from, Pencils to, int tag) const -> Transpose {
  Transpose transpose{parts(from, to, true), parts(from, to, false), false,
                      PencilLayout::order(from)[0] == PencilLayout::order(to)[0], tag};
  const auto mine = [&](const std::vector<Part>& parts) { return parts.size() == 1 && parts[0].peer == rank(); };
  transpose.stays_here = mine(transpose.out) && mine(transpose.in);
  return transpose;
}

// Sends messages from `out` and receives in `in`, which also gets a copy of this rank's own part.
void PencilFft::send_and_receive(const Stream& stream, const Transpose& transpose, Complex* out, Complex* in) {
  std::vector<Communicator::Outgoing> outgoing;
  std::vector<Communicator::Incoming> incoming;
  for (const Part& part : transpose.out)
    outgoing.push_back({part.peer, out + part.first, part.cells * sizeof(Complex)});
  for (const Part& part : transpose.in) incoming.push_back({part.peer, in + part.first, part.cells * sizeof(Complex)});
  messages_.exchange(stream, outgoing, incoming, transpose.tag);
}

// Moves the mesh from one array to the other; each serves as the other's message buffer. Planes are transformed just
// before and after they are copied, a few at a time where the order of the copy allows it.
void PencilFft::run(const Stream& stream, const Transpose& transpose, float* from, float* to, const Planes& before,
                    const Planes& after) {
  auto* source = reinterpret_cast<Complex*>(from);
  auto* target = reinterpret_cast<Complex*>(to);
  const bool stays = transpose.stays_here, same_planes = stays && transpose.same_planes;
  if (!same_planes) before.transform(0, before.count);
  if (!stays) {
    for (const Part& part : transpose.out) copy_box(stream, part.copy, source + part.base, target + part.first);
    send_and_receive(stream, transpose, target, source);
  }
  const std::size_t some = stays && !same_planes ? after.count : lines_.together(after.count);
  for (std::size_t plane = 0; plane < after.count; plane += some) {
    const std::size_t count = std::min(some, after.count - plane);
    if (same_planes) before.transform(plane, count);
    for (const Part& part : transpose.in) {
      BoxCopy copy = part.copy;
      if (stays) copy.from_step = transpose.out[0].copy.from_step;
      copy.count[0] = count;
      copy_box(stream, copy, source + part.first + copy.from_step[0] * plane,
               target + part.base + copy.to_step[0] * plane);
    }
    after.transform(plane, count);
  }
}

auto PencilFft::planes(const Stream& stream, Pencils pencils, float* mesh, LineTransform way) -> Planes {
  const PencilBox held = layout_.box(pencils, rank());
  const std::array<int, 3> axes = PencilLayout::order(pencils);
  const std::size_t lines = held.along[axes[1]].size();
  const std::size_t row = pencils == Pencils::kZ ? real_row() : mode_row();
  return {held.along[axes[0]].size(), [this, &stream, mesh, way, lines, row](std::size_t first, std::size_t count) {
            float* const values = mesh + first * lines * row;
            lines_.transform(stream, way, values, values, count * lines);
          }};
}

void PencilFft::forward(const Stream& stream, float* mesh) {
  using enum LineTransform;
  work_.resize(size());
  float* work = work_.data();
  run(stream, z_to_y_, mesh, work, planes(stream, Pencils::kZ, mesh, kRealToModes),
      planes(stream, Pencils::kY, work, kForward));
  run(stream, y_to_x_, work, mesh, {0, [](std::size_t, std::size_t) {}}, planes(stream, Pencils::kX, mesh, kForward));
}

void PencilFft::backward(const Stream& stream, float* mesh) {
  using enum LineTransform;
  work_.resize(size());
  float* work = work_.data();
  run(stream, x_to_y_, mesh, work, planes(stream, Pencils::kX, mesh, kBackward),
      planes(stream, Pencils::kY, work, kBackward));
  run(stream, y_to_z_, work, mesh, {0, [](std::size_t, std::size_t) {}},
      planes(stream, Pencils::kZ, mesh, kModesToReal));
}

}  // namespace maki
