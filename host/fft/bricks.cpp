#include "host/fft/bricks.hpp"

#include <algorithm>

namespace maki {
namespace {

std::size_t counted(const PencilRange& range) { return static_cast<std::size_t>(range.count()); }

int floor_division(int a, int b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

struct Stretch {
  std::size_t in_brick, in_pencils, count;
};

// The cells shared along one axis.
std::vector<Stretch> stretches(PencilRange brick, PencilRange pencils, int m, bool periodic) {
  std::vector<Stretch> found;
  if (brick.count() == 0 || pencils.count() == 0) return found;
  const int lowest = periodic ? floor_division(brick.first, m) : 0;
  const int highest = periodic ? floor_division(brick.end - 1, m) : 0;
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
Lines lines_of(const PencilBox& box, std::size_t row) { return {counted(box.along[1]) * row, row}; }
Lines message_of(const BrickPiece& piece) { return {piece.count[1] * piece.count[2], piece.count[2]}; }

}  // namespace

std::vector<BrickPiece> brick_pieces(const PencilBox& brick, const PencilBox& pencils, int m, bool periodic) {
  std::array<std::vector<Stretch>, 3> along;
  for (std::size_t axis = 0; axis < 3; ++axis)
    along[axis] = stretches(brick.along[axis], pencils.along[axis], m, periodic);
  std::vector<BrickPiece> pieces;
  for (const Stretch& x : along[0])
    for (const Stretch& y : along[1])
      for (const Stretch& z : along[2])
        pieces.push_back({{x.in_brick, y.in_brick, z.in_brick},
                          {x.in_pencils, y.in_pencils, z.in_pencils},
                          {x.count, y.count, z.count}});
  return pieces;
}

BrickExchange::BrickExchange(const DevicePayload& path, const PencilLayout& layout, const PencilBox& brick,
                             bool periodic)
    : messages_(path), brick_(brick), pencils_(layout.box(Pencils::kReal, path.ranks().rank())) {
  const Communicator& communicator = path.ranks();
  const std::vector<PencilBox> bricks = gathered(communicator, brick_);
  const auto add = [](std::vector<Link>& links, int peer, std::vector<BrickPiece> pieces) {
    std::size_t cells = 0;
    for (const BrickPiece& piece : pieces) cells += piece.cells();
    if (cells > 0) links.push_back({peer, total(links), cells, std::move(pieces)});
  };
  for (int peer = 0; peer < communicator.size(); ++peer) {
    if (peer == communicator.rank()) continue;
    add(of_brick_, peer, brick_pieces(brick_, layout.box(Pencils::kReal, peer), layout.cells(), periodic));
    add(of_pencils_, peer, brick_pieces(bricks[static_cast<std::size_t>(peer)], pencils_, layout.cells(), periodic));
  }
  own_ = brick_pieces(brick_, pencils_, layout.cells(), periodic);
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
  const std::size_t lines = counted(brick_.along[1]);
  own_rows_.assign(counted(brick_.along[0]) * lines, 1);
  const auto shared = [&](const std::array<std::size_t, 3>& first, const std::array<std::size_t, 3>& count) {
    for (std::size_t x = first[0]; x < first[0] + count[0]; ++x)
      for (std::size_t y = first[1]; y < first[1] + count[1]; ++y) own_rows_[x * lines + y] = 0;
  };
  for (const Link& link : of_brick_)
    for (const BrickPiece& piece : link.pieces) shared(piece.in_brick, piece.count);
  for (const Landing& landing : landings_) shared(landing.in_brick, landing.count);
}

// A piece of a message may overlap several pieces of the brick.
void BrickExchange::find_landings() {
  for (const Link& link : of_pencils_) {
    for (std::size_t first = link.first; const BrickPiece& piece : link.pieces) {
      const std::array<std::size_t, 3> steps = message_of(piece).steps();
      for (const BrickPiece& own : own_) {
        Landing landing{first, steps, own.in_brick, {}};
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
      first += piece.cells();
    }
  }
}

std::size_t BrickExchange::total(const std::vector<Link>& links) {
  return links.empty() ? 0 : links.back().first + links.back().cells;
}

void BrickExchange::send_and_receive(const Stream& stream, const std::vector<Link>& to, const std::vector<Link>& from,
                                     std::size_t cell_bytes, int tag) {
  std::vector<Communicator::Outgoing> outgoing;
  std::vector<Communicator::Incoming> incoming;
  for (const Link& link : to)
    outgoing.push_back({link.peer, out_.data() + link.first * cell_bytes, link.cells * cell_bytes});
  for (const Link& link : from)
    incoming.push_back({link.peer, in_.data() + link.first * cell_bytes, link.cells * cell_bytes});
  messages_.exchange(stream, outgoing, incoming, tag);
}

void BrickExchange::send_masses(const Stream& stream, const std::uint64_t* brick) {
  out_.resize(total(of_brick_) * sizeof(std::uint64_t));
  in_.resize(total(of_pencils_) * sizeof(std::uint64_t));
  auto* sent = reinterpret_cast<std::uint64_t*>(out_.data());
  const Lines mine = lines_of(brick_, counted(brick_.along[2]));
  for (const Link& link : of_brick_) {
    for (std::size_t first = link.first; const BrickPiece& piece : link.pieces) {
      copy_box(stream, {piece.count, mine.steps(), message_of(piece).steps()}, brick + mine.at(piece.in_brick),
               sent + first);
      first += piece.cells();
    }
  }
  send_and_receive(stream, of_brick_, of_pencils_, sizeof(std::uint64_t), 4);
}

void BrickExchange::sum(const Stream& stream, const std::uint64_t* brick, std::uint64_t* mesh, std::size_t row) {
  send_masses(stream, brick);
  const auto* received = reinterpret_cast<const std::uint64_t*>(in_.data());
  const Lines mine = lines_of(brick_, counted(brick_.along[2])), theirs = lines_of(pencils_, row);
  if (!holds_pencils_) fill_zero(stream, mesh, theirs.plane * counted(pencils_.along[0]) * sizeof(std::uint64_t));
  for (const BrickPiece& piece : own_) {
    const BoxCopy box{piece.count, mine.steps(), theirs.steps()};
    const auto* from = brick + mine.at(piece.in_brick);
    auto* to = mesh + theirs.at(piece.in_pencils);
    holds_pencils_ ? copy_box(stream, box, from, to) : add_box(stream, box, from, to);
  }
  for (const Link& link : of_pencils_) {
    for (std::size_t first = link.first; const BrickPiece& piece : link.pieces) {
      add_box(stream, {piece.count, message_of(piece).steps(), theirs.steps()}, received + first,
              mesh + theirs.at(piece.in_pencils));
      first += piece.cells();
    }
  }
}

void BrickExchange::sum_in_brick(const Stream& stream, std::uint64_t* brick) {
  send_masses(stream, brick);
  const auto* received = reinterpret_cast<const std::uint64_t*>(in_.data());
  const Lines mine = lines_of(brick_, counted(brick_.along[2]));
  for (const Landing& landing : landings_)
    add_box(stream, {landing.count, landing.message_steps, mine.steps()}, received + landing.first,
            brick + mine.at(landing.in_brick));
}

void BrickExchange::fetch(const Stream& stream, const float* mesh, std::size_t row, float* brick) {
  out_.resize(total(of_pencils_) * sizeof(float));
  in_.resize(total(of_brick_) * sizeof(float));
  auto* sent = reinterpret_cast<float*>(out_.data());
  const auto* received = reinterpret_cast<const float*>(in_.data());
  const Lines mine = lines_of(brick_, counted(brick_.along[2])), theirs = lines_of(pencils_, row);
  for (const Link& link : of_pencils_) {
    for (std::size_t first = link.first; const BrickPiece& piece : link.pieces) {
      copy_box(stream, {piece.count, theirs.steps(), message_of(piece).steps()}, mesh + theirs.at(piece.in_pencils),
               sent + first);
      first += piece.cells();
    }
  }
  send_and_receive(stream, of_pencils_, of_brick_, sizeof(float), 5);
  std::size_t held = total(of_brick_);
  for (const BrickPiece& piece : own_) held += piece.cells();
  if (held < size()) fill_zero(stream, brick, size() * sizeof(float));
  for (const BrickPiece& piece : own_)
    copy_box(stream, {piece.count, theirs.steps(), mine.steps()}, mesh + theirs.at(piece.in_pencils),
             brick + mine.at(piece.in_brick));
  for (const Link& link : of_brick_) {
    for (std::size_t first = link.first; const BrickPiece& piece : link.pieces) {
      copy_box(stream, {piece.count, message_of(piece).steps(), mine.steps()}, received + first,
               brick + mine.at(piece.in_brick));
      first += piece.cells();
    }
  }
}

}  // namespace maki
