#include "host/fft/particle_brick.hpp"

#include <algorithm>
#include <array>

#include "kernels/mesh/assign.hpp"

namespace maki {

MassRange mass_range(const Communicator& communicator, const Stream& stream, const SourceParticle* particles,
                     std::size_t n) {
  const MassRange mine = mass_range(stream, particles, n);
  double smallest = mine.smallest;
  std::array<double, 3> most = {mine.largest, mine.massless ? 1.0 : 0.0, mine.invalid ? 1.0 : 0.0};
  communicator.min({&smallest, 1});
  communicator.max(most);
  return {static_cast<float>(smallest), static_cast<float>(most[0]), most[1] > 0, most[2] > 0};
}

MassTotals mass_totals(const Communicator& communicator, const Stream& stream, const SourceParticle* particles,
                       std::size_t n) {
  MassTotals totals;
  totals.range = mass_range(communicator, stream, particles, n);
  std::array<std::uint64_t, 3> sums = {n, finest_units(stream, particles, n, totals.range),
                                       count_heaviest(stream, particles, n, totals.range)};
  communicator.sum(sums);
  totals.particles = sums[0];
  totals.finest_units = sums[1];
  totals.heaviest = sums[2];
  return totals;
}

MassUnit choose_mass_unit(const Communicator& communicator, const Stream& stream, Assignment assignment, int cells,
                          const SourceParticle* particles, std::size_t n) {
  return choose_mass_unit(assignment, cells, mass_totals(communicator, stream, particles, n));
}

namespace {

constexpr int kRoom = 2;  // cells by which particles may move before a new brick is made

// Extends the box by `below` and `above` cells along an axis, or to all of it.
void grow(MeshBox& box, int axis, int below, int above) {
  int &origin = box.origin[axis], &extent = box.extent[axis];
  extent += below + above;
  origin = (origin - below + box.cells) % box.cells;
  if (extent < box.cells) return;
  extent = box.cells;
  origin = 0;
}

PencilBox as_brick(const MeshBox& box, int ghosts) {
  PencilBox brick;
  if (box.size() == 0) return brick;
  for (std::size_t axis = 0; axis < 3; ++axis)
    brick.along[axis] = {box.origin[axis] - ghosts, box.origin[axis] + box.extent[axis] + ghosts};
  return brick;
}

}  // namespace

PencilRange occupied_run(const std::vector<std::uint32_t>& marks) {
  const auto m = static_cast<int>(marks.size());
  const auto first_marked = std::find_if(marks.begin(), marks.end(), [](std::uint32_t mark) { return mark != 0; });
  if (first_marked == marks.end()) return {};
  const auto start = static_cast<int>(first_marked - marks.begin());
  int longest = -1, after = 0, last = start;
  for (int i = start + 1; i <= start + m; ++i) {
    if (!marks[static_cast<std::size_t>(i % m)]) continue;
    if (i - last - 1 > longest) {
      longest = i - last - 1;
      after = i;
    }
    last = i;
  }
  return {after % m, after % m + m - longest};
}

ParticleBrick::ParticleBrick(const Communicator& communicator, const PencilLayout& layout, std::size_t row,
                             Assignment cloud, bool interlaced, int ghosts)
    : communicator_(communicator), path_(communicator), layout_(layout), row_(row), interlaced_(interlaced),
      reach_(cloud_reach(cloud, interlaced)), ghosts_(ghosts), counter_(cloud) {}

void ParticleBrick::hold_all() {
  all_ = true;
  masses_.reset();  // made anew
  ghosted_.reset();
}

void ParticleBrick::make(const Stream& stream, const SourceParticle* particles, std::size_t n) {
  sent_before_ += sent_now();
  room_ = box_ = all_ ? MeshBox::whole(layout_.cells()) : MeshBox{layout_.cells(), {}, {}};
  if (n > 0 && !all_) {
    const auto planes = occupied_planes(stream, particles, n, layout_.cells());
    for (int axis = 0; axis < 3; ++axis) {
      const PencilRange run = occupied_run(planes[static_cast<std::size_t>(axis)]);
      room_.origin[axis] = run.first;
      room_.extent[axis] = run.count();
      grow(room_, axis, kRoom, kRoom);
      box_.origin[axis] = room_.origin[axis];
      box_.extent[axis] = room_.extent[axis];
      grow(box_, axis, reach_.below, reach_.above);
    }
  }
  masses_.reset();  // frees its memory for the next one
  ghosted_.reset();
  masses_.emplace(path_, layout_, as_brick(box_, 0), true);
  if (ghosts_ > 0) ghosted_.emplace(path_, layout_, as_brick(box_, ghosts_), true);
}

void ParticleBrick::fit(const Stream& stream, const SourceParticle* particles, std::size_t n) {
  const bool fits = masses_ && (n == 0 || all_ || all_within(stream, particles, n, room_));
  std::uint64_t outside = fits ? 0 : 1;
  communicator_.max({&outside, 1});
  if (outside) make(stream, particles, n);
}

void ParticleBrick::take(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit) {
  fit(stream, particles, n);
  counter_.take(stream, particles, n, unit, box_);
}

void ParticleBrick::count(const Stream& stream, bool shifted, std::uint64_t* counts, bool zero) {
  if (all_) return counter_.count(stream, shifted, counts, zero);
  brick_.resize(std::max(brick_.size(), box_.size()));
  counter_.count(stream, shifted, brick_.data());
  masses_->sum(stream, brick_.data(), counts, static_cast<std::size_t>(layout_.cells()));
}

bool ParticleBrick::to_masses(const Stream& stream, const MassUnit& unit, std::uint64_t* counts, float* mesh) const {
  const PencilBox pencils = layout_.box(Pencils::kReal, communicator_.rank());
  const auto planes = static_cast<std::size_t>(pencils.along[0].count());
  const auto lines = static_cast<std::size_t>(pencils.along[1].count()), m = static_cast<std::size_t>(layout_.cells());
  return counts_to_masses(stream, {{0, 0, 0}, {planes, lines, m}, {lines * m, m}, 0, {lines * row_, row_}}, unit,
                          counts, mesh);
}

void ParticleBrick::assign(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                           float* mesh, float* shifted) {
  take(stream, particles, n, unit);
  for (int which = 0; which < (interlaced_ ? 2 : 1); ++which) {
    assign_one(stream, unit, which == 1, which == 1 ? shifted : mesh);
  }
}

// Needs no separate array of counts if the brick holds the pencils.
void ParticleBrick::assign_one(const Stream& stream, const MassUnit& unit, bool shifted, float* mesh) {
  const PencilBox pencils = layout_.box(Pencils::kReal, communicator_.rank());
  const auto lines = static_cast<std::size_t>(pencils.along[1].count());
  if (!masses_->holds_pencils()) {
    counts_.resize(counts());
    count(stream, shifted, counts_.data());
    to_masses(stream, unit, counts_.data(), mesh);
    return;
  }
  const auto rows = static_cast<std::size_t>(box_.extent[1]), cells = static_cast<std::size_t>(box_.extent[2]);
  std::vector<CountBox> boxes;
  for (const auto& [from, to, count] : masses_->own_pieces())
    boxes.push_back({from, count, {rows * cells, cells}, (to[0] * lines + to[1]) * row_ + to[2], {lines * row_, row_}});
  brick_.resize(std::max(brick_.size(), box_.size()));
  const std::uint8_t* own = masses_->own_rows().data();
  counter_.count(stream, shifted, brick_.data(), {own, boxes, unit, mesh});
  masses_->sum_in_brick(stream, brick_.data());
  for (const CountBox& box : boxes)
    counts_to_masses(stream, box, unit, brick_.data(), mesh, MassCounter::makes_masses() ? own : nullptr);
}

std::vector<std::uint8_t> ParticleBrick::planes() const {
  if (all_) return counter_.planes();
  return std::vector<std::uint8_t>(static_cast<std::size_t>(layout_.cells()), 1);
}

const float* ParticleBrick::fetch(const Stream& stream, const float* mesh) {
  brick_.resize(std::max(brick_.size(), (forces().size() + 1) / 2));
  auto* values = reinterpret_cast<float*>(brick_.data());
  forces().fetch(stream, mesh, row_, values);
  return values;
}

std::size_t ParticleBrick::bytes() const {
  std::size_t sum = (brick_.capacity() + counts_.capacity()) * sizeof(std::uint64_t) + counter_.bytes();
  for (const auto* exchange : {&masses_, &ghosted_})
    if (*exchange) sum += (*exchange)->bytes();
  return sum;
}

std::uint64_t ParticleBrick::sent_now() const {
  std::uint64_t sum = 0;
  for (const auto* exchange : {&masses_, &ghosted_})
    if (*exchange) sum += (*exchange)->traffic().bytes;
  return sum;
}

}  // namespace maki
