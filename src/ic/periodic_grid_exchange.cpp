// How a PeriodicGrid changes hands between the transforms along its axes: in place, but for a batch of messages.
#include <algorithm>
#include <utility>

#include "src/ic/periodic_grid.hpp"

namespace maki {

void BoxMessages::Side::add(int peer, const ArrayBox& box) {
  messages.push_back({peer, box, total});
  total += box.numbers();
}

void BoxMessages::Side::clear() {
  messages.clear();
  total = 0;
}

void BoxMessages::clear() {
  outgoing_.clear();
  incoming_.clear();
}

void BoxMessages::exchange(const Communicator& ranks, const Complex* array) {
  outgoing_.data.resize(outgoing_.total);
  incoming_.data.resize(incoming_.total);
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  for (const auto& [peer, box, begin] : outgoing_.messages) {
    Complex* const message = outgoing_.data.data() + begin;
    const auto [planes, rows, length] = box.count;
    const Complex* const from = array + box.base;
#pragma omp parallel for collapse(2) schedule(static)
    for (std::size_t i = 0; i < planes; ++i) {
      for (std::size_t j = 0; j < rows; ++j) {
        std::copy_n(from + i * box.step[0] + j * box.step[1], length, message + (i * rows + j) * length);
      }
    }
    if (box.numbers() > 0) out.push_back({peer, message, box.numbers() * sizeof(Complex)});
  }
  for (const auto& [peer, box, begin] : incoming_.messages) {
    if (box.numbers() > 0) in.push_back({peer, incoming_.data.data() + begin, box.numbers() * sizeof(Complex)});
  }
  ranks.exchange(out, in);
}

void BoxMessages::unpack(Complex* array) const {
  for (const auto& [peer, box, begin] : incoming_.messages) {
    const Complex* const message = incoming_.data.data() + begin;
    const auto [planes, rows, length] = box.count;
    Complex* const to = array + box.base;
#pragma omp parallel for collapse(2) schedule(static)
    for (std::size_t i = 0; i < planes; ++i) {
      for (std::size_t j = 0; j < rows; ++j) {
        std::copy_n(message + (i * rows + j) * length, length, to + i * box.step[0] + j * box.step[1]);
      }
    }
  }
}

auto BoxMessages::received(std::size_t box) const -> const Complex* {
  const auto& message = incoming_.messages.at(box);
  return message.box.numbers() > 0 ? incoming_.data.data() + message.begin : nullptr;
}

namespace {

std::size_t counted(const PencilRange& range) { return static_cast<std::size_t>(range.count()); }
std::size_t first_of(const PencilRange& range) { return static_cast<std::size_t>(range.first); }

// How many of `units` go into one batch.
int batch_of(int units, std::size_t bytes_each, std::size_t bytes) {
  const std::size_t most = bytes / std::max<std::size_t>(bytes_each, 1);
  return static_cast<int>(std::clamp<std::size_t>(most, 1, static_cast<std::size_t>(std::max(units, 1))));
}

}  // namespace

// Within a row of ranks, which have planes of the same x: some y and all mz here, all y and some mz there. Planes stay
// where they are, so that a few at a time can go.
void PeriodicGrid::exchange_in_row(bool to_modes) {
  if (layout_.grid().columns == 1 || planes() == 0) return;
  // The largest plane of the row, so that all make the same batches.
  const std::size_t rows = static_cast<std::size_t>(n_ / layout_.grid().columns) + 1;
  const std::size_t largest = rows * (static_cast<std::size_t>(half()) + 1);
  const int batch = batch_of(planes(), largest * sizeof(Complex), messages_.bytes);
  for (int first = 0; first < planes(); first += batch) {
    exchange_planes(first, std::min(batch, planes() - first), to_modes);
  }
}

void PeriodicGrid::exchange_planes(int first, int count, bool to_modes) {
  const std::size_t row = static_cast<std::size_t>(half()) + 1, base = static_cast<std::size_t>(first) * plane_;
  const auto planes = static_cast<std::size_t>(count);
  const int columns = layout_.grid().columns, first_rank = layout_.row_of(ranks_.rank()) * columns;
  BoxMessages messages;
  for (int peer = first_rank; peer < first_rank + columns; ++peer) {
    const PencilRange y = layout_.box(Pencils::kReal, peer).along[1], mz = layout_.box(Pencils::kX, peer).along[2];
    const ArrayBox here = {.base = base + first_of(mz),
                           .count = {planes, counted(points_.along[1]), counted(mz)},
                           .step = {plane_, row}};
    const ArrayBox there = {.base = base + first_of(y) * mode_count(),
                            .count = {planes, counted(y), mode_count()},
                            .step = {plane_, mode_count()}};
    messages.send(peer, to_modes ? here : there);
    messages.receive(peer, to_modes ? there : here);
  }
  messages.exchange(ranks_, data_.data());
  messages.unpack(data_.data());
}

// Within a column of ranks: [x][y] with all y becomes [y][x] with all x, or back, which is the same. What a rank sends
// to another is as much as it gets from there, so that the one takes the other's place; a few mz at a time.
void PeriodicGrid::swap_x_and_y() {
  if (planes() == 0) return;
  swap_own_block();
  if (layout_.grid().rows == 1) return;
  const auto modes = static_cast<int>(mode_count());
  const std::size_t largest = static_cast<std::size_t>(n_ / layout_.grid().rows + 1) * static_cast<std::size_t>(n_);
  const int batch = batch_of(modes, largest * sizeof(Complex), messages_.bytes);
  for (int first = 0; first < modes; first += batch) swap_blocks(first, std::min(batch, modes - first));
}

void PeriodicGrid::swap_own_block() {
  Complex* const corner = data_.data() + first_of(modes_.along[1]) * mode_count();
  const std::size_t length = mode_count();
#pragma omp parallel for schedule(dynamic)
  for (int i = 0; i < planes(); ++i) {
    for (int j = 0; j < i; ++j) {
      Complex* a = corner + static_cast<std::size_t>(i) * plane_ + static_cast<std::size_t>(j) * length;
      Complex* b = corner + static_cast<std::size_t>(j) * plane_ + static_cast<std::size_t>(i) * length;
      std::swap_ranges(a, a + length, b);
    }
  }
}

void PeriodicGrid::swap_blocks(int first, int count) {
  const auto length = static_cast<std::size_t>(count), mine = static_cast<std::size_t>(planes());
  const PencilGrid grid = layout_.grid();
  BoxMessages messages;
  for (int row = 0; row < grid.rows; ++row) {
    const int peer = row * grid.columns + layout_.column_of(ranks_.rank());
    if (peer == ranks_.rank()) continue;
    const PencilRange its = layout_.box(Pencils::kX, peer).along[1];
    const std::size_t base = first_of(its) * mode_count() + static_cast<std::size_t>(first);
    messages.send(peer, {.base = base, .count = {mine, counted(its), length}, .step = {plane_, mode_count()}});
    messages.receive(peer, {.base = base, .count = {counted(its), mine, length}, .step = {mode_count(), plane_}});
  }
  messages.exchange(ranks_, data_.data());
  messages.unpack(data_.data());
}

}  // namespace maki
