#include "host/fft/pencil_fft.hpp"

#include <algorithm>
#include <string_view>

#include "kernels/device/device.hpp"

namespace maki {
namespace {

using Complex = std::complex<float>;

bool in_host_memory() { return std::string_view(backend_name()) == "cpu"; }

std::size_t counted(const PencilRange& range) { return static_cast<std::size_t>(range.count()); }

}  // namespace

PencilFft::PencilFft(const Communicator& communicator, int m)
    : PencilFft(communicator, PencilLayout(m, communicator.size())) {}

PencilFft::PencilFft(const Communicator& communicator, const PencilLayout& layout)
    : communicator_(communicator), layout_(layout), lines_(layout.cells()) {
  z_to_y_ = plan(Pencils::kZ, Pencils::kY);
  y_to_x_ = plan(Pencils::kY, Pencils::kX);
  x_to_y_ = plan(Pencils::kX, Pencils::kY);
  y_to_z_ = plan(Pencils::kY, Pencils::kZ);
  sent_.resize(numbers());
  received_.resize(numbers());
  if (!in_host_memory()) {
    staged_out_.resize(numbers());
    staged_in_.resize(numbers());
  }
}

std::size_t PencilFft::size() const {
  const int rank = communicator_.rank();
  const std::size_t complex_lines =
      std::max(lines_.padded(layout_.lines(Pencils::kY, rank)), lines_.padded(layout_.lines(Pencils::kX, rank)));
  return std::max(real_row() * lines_.padded(layout_.lines(Pencils::kReal, rank)), mode_row() * complex_lines);
}

std::size_t PencilFft::bytes() const {
  return (sent_.capacity() + received_.capacity() + staged_out_.capacity() + staged_in_.capacity()) * sizeof(Complex);
}

// The most that this rank holds in any layout.
std::size_t PencilFft::numbers() const {
  std::size_t most = 0;
  for (Pencils pencils : {Pencils::kZ, Pencils::kY, Pencils::kX})
    most = std::max(most, layout_.box(pencils, communicator_.rank()).cells());
  return most;
}

// Complex numbers from one cell to the next along x, y and z.
std::array<std::size_t, 3> PencilFft::steps(Pencils pencils, const PencilBox& held) const {
  const std::array<int, 3> axes = PencilLayout::order(pencils);
  std::array<std::size_t, 3> step;
  step[axes[2]] = 1;
  step[axes[1]] = (pencils == Pencils::kZ ? real_row() : mode_row()) / 2;
  step[axes[0]] = step[axes[1]] * counted(held.along[axes[1]]);
  return step;
}

// Messages stand in the order of the layout that they go to, so that it is the sender who transposes.
std::vector<PencilFft::Part> PencilFft::parts(Pencils from, Pencils to, bool sending) const {
  const int rank = communicator_.rank();
  const Pencils here = sending ? from : to, there = sending ? to : from;
  const PencilBox held = layout_.box(here, rank);
  const std::array<std::size_t, 3> step = steps(here, held);
  const std::array<int, 3> axes = PencilLayout::order(to);
  const PencilGrid grid = layout_.grid();
  const bool in_row = from == Pencils::kZ || to == Pencils::kZ;
  std::vector<Part> found;
  std::size_t first = 0;
  for (int i = 0; layout_.takes_part(rank) && i < (in_row ? grid.columns : grid.rows); ++i) {
    const int peer =
        in_row ? layout_.row_of(rank) * grid.columns + i : i * grid.columns + layout_.column_of(rank);
    const PencilBox common = overlap(held, layout_.box(there, peer));
    if (common.cells() == 0) continue;
    Part part{peer, first, common.cells(), 0, {}};
    std::array<std::size_t, 3> mesh_step, message_step;
    for (std::size_t a = 0; a < 3; ++a) {
      const auto axis = static_cast<std::size_t>(axes[a]);
      part.copy.count[a] = counted(common.along[axis]);
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

PencilFft::Transpose PencilFft::plan(Pencils from, Pencils to) const {
  return {parts(from, to, true), parts(from, to, false)};
}

void PencilFft::send_and_receive(const Stream& stream, const Transpose& transpose, int tag) {
  const int rank = communicator_.rank();
  const bool staged = !in_host_memory();
  Complex* out = staged ? staged_out_.data() : sent_.data();
  Complex* in = staged ? staged_in_.data() : received_.data();
  std::vector<Communicator::Outgoing> outgoing;
  std::vector<Communicator::Incoming> incoming;
  stream.synchronize();
  for (const Part& part : transpose.out) {
    if (part.peer == rank) continue;
    const std::size_t bytes = part.cells * sizeof(Complex);
    if (staged) copy_to_host(stream, out + part.first, sent_.data() + part.first, bytes);
    outgoing.push_back({part.peer, out + part.first, bytes});
    traffic_.messages += 1;
    traffic_.bytes += bytes;
  }
  for (const Part& part : transpose.in)
    if (part.peer != rank) incoming.push_back({part.peer, in + part.first, part.cells * sizeof(Complex)});
  if (!outgoing.empty() || !incoming.empty()) communicator_.exchange(outgoing, incoming, tag);
  if (!staged) return;
  for (const Part& part : transpose.in)
    if (part.peer != rank)
      copy_to_device(stream, received_.data() + part.first, in + part.first, part.cells * sizeof(Complex));
}

void PencilFft::run(const Stream& stream, const Transpose& transpose, float* mesh, int tag) {
  auto* numbers = reinterpret_cast<Complex*>(mesh);
  const Complex* own = nullptr;
  for (const Part& part : transpose.out) {
    copy_box(stream, part.copy, numbers + part.base, sent_.data() + part.first);
    if (part.peer == communicator_.rank()) own = sent_.data() + part.first;
  }
  send_and_receive(stream, transpose, tag);
  for (const Part& part : transpose.in) {
    const bool stays = part.peer == communicator_.rank();
    copy_box(stream, part.copy, stays ? own : received_.data() + part.first, numbers + part.base);
  }
}

void PencilFft::forward(const Stream& stream, float* mesh) {
  const int rank = communicator_.rank();
  lines_.real_to_modes(stream, mesh, layout_.lines(Pencils::kZ, rank));
  run(stream, z_to_y_, mesh, 0);
  lines_.forward(stream, mesh, layout_.lines(Pencils::kY, rank));
  run(stream, y_to_x_, mesh, 1);
  lines_.forward(stream, mesh, layout_.lines(Pencils::kX, rank));
  stream.synchronize();
}

void PencilFft::backward(const Stream& stream, float* mesh) {
  const int rank = communicator_.rank();
  lines_.backward(stream, mesh, layout_.lines(Pencils::kX, rank));
  run(stream, x_to_y_, mesh, 2);
  lines_.backward(stream, mesh, layout_.lines(Pencils::kY, rank));
  run(stream, y_to_z_, mesh, 3);
  lines_.modes_to_real(stream, mesh, layout_.lines(Pencils::kZ, rank));
  stream.synchronize();
}

}  // namespace maki
