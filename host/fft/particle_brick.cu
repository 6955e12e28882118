#include "host/fft/particle_brick.hpp"

#include <algorithm>
#include <array>

#include "kernels/mesh/assign.hpp"

namespace maki {
namespace {

int floor_division(int a, int b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

struct Stretch {
  std::size_t in_brick, in_pencils, count;
};

// The cells shared along one axis.
std::vector<Stretch> stretches(PencilRange brick, PencilRange pencils, int m) {
  std::vector<Stretch> found;
  if (brick.count() == 0 || pencils.count() == 0) return found;
  const int lowest = floor_division(brick.first, m), highest = floor_division(brick.end - 1, m);
  for (int image = lowest; image <= highest; ++image) {
    const int first = std::max(brick.first, pencils.first + image * m);
    const int end = std::min(brick.end, pencils.end + image * m);
    if (first >= end) continue;
    found.push_back({static_cast<std::size_t>(first - brick.first),
                     static_cast<std::size_t>(first - image * m - pencils.first),
                     static_cast<std::size_t>(end - first)});
  }
  return found;
}

// Steps of an array of lines [x][y][z].
struct Lines {
  std::size_t plane, row;
  std::size_t at(const std::array<std::size_t, 3>& cell) const { return plane * cell[0] + row * cell[1] + cell[2]; }
  std::array<std::size_t, 3> steps() const { return {plane, row, 1}; }
};
Lines lines_of(const PencilBox& box, std::size_t row) { return {box.along[1].size() * row, row}; }
Lines message_of(const BrickPiece& piece) { return {piece.count[1] * piece.count[2], piece.count[2]}; }

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

PencilBox as_brick(const MeshBox& box) {
  PencilBox brick;
  if (box.size() == 0) return brick;
  for (std::size_t axis = 0; axis < 3; ++axis)
    brick.along[axis] = {box.origin[axis], box.origin[axis] + box.extent[axis]};
  return brick;
}

// The cells shared by `brick` and `pencils`, in a fixed order. `pencils` is a box within the mesh. A brick longer than
// m has several pieces with the same cell.
std::vector<BrickPiece> brick_pieces(const PencilBox& brick, const PencilBox& pencils, int m) {
  std::array<std::vector<Stretch>, 3> along;
  for (std::size_t axis = 0; axis < 3; ++axis) along[axis] = stretches(brick.along[axis], pencils.along[axis], m);
  std::vector<BrickPiece> pieces;
  for (const Stretch& x : along[0])
    for (const Stretch& y : along[1])
      for (const Stretch& z : along[2])
        pieces.push_back({{x.in_brick, y.in_brick, z.in_brick},
                          {x.in_pencils, y.in_pencils, z.in_pencils},
                          {x.count, y.count, z.count}});
  return pieces;
}

}  // namespace

BrickExchange::BrickExchange(const DevicePayload& path, const PencilLayout& layout, const PencilBox& brick)
    : messages_(path), brick_(brick), pencils_(layout.box(Pencils::kReal, path.ranks().rank())) {
  const Communicator& communicator = path.ranks();
  const std::vector<PencilBox> bricks = gathered(communicator, brick_);
  for (int peer = 0; peer < communicator.size(); ++peer) {
    if (peer == communicator.rank()) continue;
    of_brick_.add(peer, brick_pieces(brick_, layout.box(Pencils::kReal, peer), layout.cells()));
    of_pencils_.add(peer, brick_pieces(bricks[static_cast<std::size_t>(peer)], pencils_, layout.cells()));
  }
  own_ = brick_pieces(brick_, pencils_, layout.cells());
  std::size_t held = 0;
  bool once = true;  // no cell of the mesh is in the brick twice
  for (const BrickPiece& piece : own_) held += piece.cells();
  for (const PencilRange& range : brick_.along) once = once && range.count() <= layout.cells();
  holds_pencils_ = once && held == pencils_.cells();
  if (!holds_pencils_) return;
  find_landings();
  find_own_rows();
}

void BrickExchange::find_own_rows() {
  const std::size_t lines = brick_.along[1].size();
  own_rows_.assign(brick_.along[0].size() * lines, 1);
  const auto shared = [&](const std::array<std::size_t, 3>& first, const std::array<std::size_t, 3>& count) {
    for (std::size_t x = first[0]; x < first[0] + count[0]; ++x)
      for (std::size_t y = first[1]; y < first[1] + count[1]; ++y) own_rows_[x * lines + y] = 0;
  };
  for (const BrickPiece& piece : of_brick_.pieces) shared(piece.in_brick, piece.count);
  for (const Landing& landing : landings_) shared(landing.in_brick, landing.count);
}

// A piece of a message may overlap several pieces of the brick.
void BrickExchange::find_landings() {
  for (const BrickPiece& piece : of_pencils_.pieces) {
    const std::array<std::size_t, 3> steps = message_of(piece).steps();
    for (const BrickPiece& own : own_) {
      Landing landing{piece.in_messages, steps, own.in_brick, {}};
      for (std::size_t a = 0; a < 3; ++a) {
        const std::size_t begin = std::max(piece.in_pencils[a], own.in_pencils[a]);
        const std::size_t end = std::min(piece.in_pencils[a] + piece.count[a], own.in_pencils[a] + own.count[a]);
        if (begin >= end) break;
        landing.count[a] = end - begin;
        landing.first += steps[a] * (begin - piece.in_pencils[a]);
        landing.in_brick[a] += begin - own.in_pencils[a];
      }
      if (landing.count[2] > 0) landings_.push_back(landing);
    }
  }
}

void BrickExchange::Messages::add(int peer, const std::vector<BrickPiece>& shared) {
  const std::size_t first = cells;
  for (const BrickPiece& piece : shared) {
    pieces.push_back(piece);
    pieces.back().in_messages = cells;
    cells += piece.cells();
  }
  if (cells > first) links.push_back({peer, first, cells - first});
}

void BrickExchange::send_and_receive(const Stream& stream, const Messages& to, const Messages& from,
                                     std::size_t cell_bytes, int tag) {
  std::vector<Communicator::Outgoing> outgoing;
  std::vector<Communicator::Incoming> incoming;
  for (const Link& link : to.links)
    outgoing.push_back({link.peer, out_.data() + link.first * cell_bytes, link.cells * cell_bytes});
  for (const Link& link : from.links)
    incoming.push_back({link.peer, in_.data() + link.first * cell_bytes, link.cells * cell_bytes});
  messages_.exchange(stream, outgoing, incoming, tag);
}

void BrickExchange::send_masses(const Stream& stream, const std::uint64_t* brick) {
  out_.resize(of_brick_.cells * sizeof(std::uint64_t));
  in_.resize(of_pencils_.cells * sizeof(std::uint64_t));
  auto* sent = reinterpret_cast<std::uint64_t*>(out_.data());
  const Lines mine = lines_of(brick_, brick_.along[2].size());
  for (const BrickPiece& piece : of_brick_.pieces)
    copy_box(stream, {piece.count, mine.steps(), message_of(piece).steps()}, brick + mine.at(piece.in_brick),
             sent + piece.in_messages);
  send_and_receive(stream, of_brick_, of_pencils_, sizeof(std::uint64_t), 4);
}

void BrickExchange::sum(const Stream& stream, const std::uint64_t* brick, std::uint64_t* mesh, std::size_t row) {
  send_masses(stream, brick);
  const auto* received = reinterpret_cast<const std::uint64_t*>(in_.data());
  const Lines mine = lines_of(brick_, brick_.along[2].size()), theirs = lines_of(pencils_, row);
  if (!holds_pencils_) fill_zero(stream, mesh, theirs.plane * pencils_.along[0].size() * sizeof(std::uint64_t));
  for (const BrickPiece& piece : own_) {
    const BoxCopy box{piece.count, mine.steps(), theirs.steps()};
    const auto* from = brick + mine.at(piece.in_brick);
    auto* to = mesh + theirs.at(piece.in_pencils);
    holds_pencils_ ? copy_box(stream, box, from, to) : add_box(stream, box, from, to);
  }
  for (const BrickPiece& piece : of_pencils_.pieces)
    add_box(stream, {piece.count, message_of(piece).steps(), theirs.steps()}, received + piece.in_messages,
            mesh + theirs.at(piece.in_pencils));
}

void BrickExchange::sum_in_brick(const Stream& stream, std::uint64_t* brick) {
  send_masses(stream, brick);
  const auto* received = reinterpret_cast<const std::uint64_t*>(in_.data());
  const Lines mine = lines_of(brick_, brick_.along[2].size());
  for (const Landing& landing : landings_)
    add_box(stream, {landing.count, landing.message_steps, mine.steps()}, received + landing.first,
            brick + mine.at(landing.in_brick));
}

void BrickExchange::fetch(const Stream& stream, const float* mesh, std::size_t row, float* brick) {
  out_.resize(of_pencils_.cells * sizeof(float));
  in_.resize(of_brick_.cells * sizeof(float));
  auto* sent = reinterpret_cast<float*>(out_.data());
  const auto* received = reinterpret_cast<const float*>(in_.data());
  const Lines mine = lines_of(brick_, brick_.along[2].size()), theirs = lines_of(pencils_, row);
  for (const BrickPiece& piece : of_pencils_.pieces)
    copy_box(stream, {piece.count, theirs.steps(), message_of(piece).steps()}, mesh + theirs.at(piece.in_pencils),
             sent + piece.in_messages);
  send_and_receive(stream, of_pencils_, of_brick_, sizeof(float), 5);
  for (const BrickPiece& piece : own_)
    copy_box(stream, {piece.count, theirs.steps(), mine.steps()}, mesh + theirs.at(piece.in_pencils),
             brick + mine.at(piece.in_brick));
  for (const BrickPiece& piece : of_brick_.pieces)
    copy_box(stream, {piece.count, message_of(piece).steps(), mine.steps()}, received + piece.in_messages,
             brick + mine.at(piece.in_brick));
}

MassRange mass_range(const Communicator& communicator, const Stream& stream, const SourceParticle* particles,
                     std::size_t n) {
  MassRange all;
  for (const MassRange& one : gathered(communicator, mass_range(stream, particles, n))) all.join(one);
  return all;
}

MassTotals mass_totals(const Communicator& communicator, const Stream& stream, const SourceParticle* particles,
                       std::size_t n, const MassRange& range) {
  MassTotals totals{n, range, UnitSum(finest_units(stream, particles, n, range)),
                    count_heaviest(stream, particles, n, range)};
  UnitSum& units = totals.finest_units;
  std::array<std::uint64_t, 4> sums = {n, totals.heaviest, units.high, units.low};
  communicator.sum(sums);
  totals.particles = sums[0];
  totals.heaviest = sums[1];
  units.high = sums[2], units.low = sums[3];
  return totals;
}

MassTotals mass_totals(const Communicator& communicator, const Stream& stream, const SourceParticle* particles,
                       std::size_t n) {
  return mass_totals(communicator, stream, particles, n, mass_range(communicator, stream, particles, n));
}

MassUnit choose_mass_unit(const Communicator& communicator, const Stream& stream, Assignment assignment, int cells,
                          const SourceParticle* particles, std::size_t n) {
  return choose_mass_unit(assignment, cells, mass_totals(communicator, stream, particles, n));
}

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
                             Assignment cloud, bool interlaced)
    : communicator_(communicator), path_(communicator), layout_(layout), row_(row), interlaced_(interlaced),
      reach_(cloud_reach(cloud, interlaced)), counter_(cloud) {}

void ParticleBrick::hold_all() {
  all_ = true;
  exchange_.reset();  // made anew
}

void ParticleBrick::make(const Stream& stream, const SourceParticle* particles, std::size_t n) {
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
  exchange_.reset();  // frees its memory for the next one
  exchange_.emplace(path_, layout_, as_brick(box_));
}

void ParticleBrick::fit(const Stream& stream, const SourceParticle* particles, std::size_t n) {
  const bool fits = exchange_ && (n == 0 || all_ || all_within(stream, particles, n, room_));
  if (largest_of(communicator_, std::uint64_t{!fits}) > 0) make(stream, particles, n);
}

void ParticleBrick::take(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit) {
  fit(stream, particles, n);
  counter_.take(stream, particles, n, unit, box_);
}

void ParticleBrick::count(const Stream& stream, bool shifted, std::uint64_t* counts, bool zero) {
  if (all_) return counter_.count(stream, shifted, counts, zero);
  brick_.resize(std::max(brick_.size(), box_.size()));
  counter_.count(stream, shifted, brick_.data());
  exchange_->sum(stream, brick_.data(), counts, static_cast<std::size_t>(layout_.cells()));
}

bool ParticleBrick::to_masses(const Stream& stream, const MassUnit& unit, std::uint64_t* counts, float* mesh) const {
  const PencilBox pencils = layout_.box(Pencils::kReal, communicator_.rank());
  const std::size_t planes = pencils.along[0].size(), lines = pencils.along[1].size();
  const auto m = static_cast<std::size_t>(layout_.cells());
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
  const std::size_t lines = pencils.along[1].size();
  if (!exchange_->holds_pencils()) {
    counts_.resize(counts());
    count(stream, shifted, counts_.data());
    to_masses(stream, unit, counts_.data(), mesh);
    return;
  }
  const auto rows = static_cast<std::size_t>(box_.extent[1]), cells = static_cast<std::size_t>(box_.extent[2]);
  std::vector<CountBox> boxes;
  for (const BrickPiece& own : exchange_->own_pieces()) {
    const Lines to{lines * row_, row_};
    boxes.push_back({own.in_brick, own.count, {rows * cells, cells}, to.at(own.in_pencils), {to.plane, to.row}});
  }
  brick_.resize(std::max(brick_.size(), box_.size()));
  const std::uint8_t* own = exchange_->own_rows().data();
  counter_.count(stream, shifted, brick_.data(), {own, boxes, unit, mesh});
  exchange_->sum_in_brick(stream, brick_.data());
  for (const CountBox& box : boxes)
    counts_to_masses(stream, box, unit, brick_.data(), mesh, MassCounter::makes_masses() ? own : nullptr);
}

std::vector<std::uint8_t> ParticleBrick::planes() const {
  if (all_) return counter_.planes();
  return std::vector<std::uint8_t>(static_cast<std::size_t>(layout_.cells()), 1);
}

const float* ParticleBrick::fetch(const Stream& stream, const float* mesh) {
  brick_.resize(std::max(brick_.size(), (exchange_->size() + 1) / 2));
  auto* values = reinterpret_cast<float*>(brick_.data());
  exchange_->fetch(stream, mesh, row_, values);
  return values;
}

}  // namespace maki
