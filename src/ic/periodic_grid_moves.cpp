// Moves the modes and points of a PeriodicGrid to other grids and to the ranks' shares of the lattice.
#include "src/ic/periodic_grid.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace maki {

namespace {

using Complex = PeriodicGrid::Complex;
using Runs = std::array<PencilRange, 2>;  // of mode numbers: 0 and above, below 0

std::size_t counted(const PencilRange& range) { return static_cast<std::size_t>(range.count()); }

PencilRange common(const PencilRange& a, const PencilRange& b) {
  return {std::max(a.first, b.first), std::min(a.end, b.end)};
}

// The mode numbers with |m| below `half` of the indices `held` of n.
Runs runs_of(const PencilRange& held, int n, int half) {
  const PencilRange negative = common(held, {n - half + 1, n});
  return {common(held, {0, half}), {negative.first - n, negative.end - n}};
}

void visit_box(const Complex* array, const ArrayBox& box, int mx, int my, const PencilRange& mz,
               const ModeRowVisitor& visit) {
  const auto rows = static_cast<int>(box.count[0]), columns = static_cast<int>(box.count[1]);
#pragma omp parallel for collapse(2) schedule(static)
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      visit(mx + j, my + i, mz, array + box.at(static_cast<std::size_t>(i), static_cast<std::size_t>(j)));
    }
  }
}

// The transfer of all modes with mx in a range of one sign.
class Transfer {
 public:
  Transfer(const PeriodicGrid& source, const PeriodicGrid& target, const ModeRowVisitor& visit)
      : source_(source), target_(target), visit_(visit), half_(std::min(source.half(), target.half())) {}

  int half() const { return half_; }

  void run(const PencilRange& mx) {
    const int me = source_.ranks().rank(), size = source_.ranks().size();
    std::vector<std::vector<Complex>> out(static_cast<std::size_t>(size));
    for (int peer = 0; peer < size; ++peer) {
      if (peer == me) continue;
      std::vector<Complex>& message = out[static_cast<std::size_t>(peer)];
      for_each_piece(me, peer, [&](const PencilRange& my, const PencilRange& mz) {
        const ArrayBox box = source_.mode_box(mx, my, mz), packed = box.packed(message.size());
        message.resize(message.size() + box.numbers());
        copy_box(source_.array(), box, message.data(), packed);
      });
    }
    const std::vector<std::vector<Complex>> in = exchange_all(source_.ranks(), std::move(out));
    for (int peer = 0; peer < size; ++peer) {
      std::size_t begin = 0;
      for_each_piece(peer, me, [&](const PencilRange& my, const PencilRange& mz) {
        if (peer == me) return visit_box(source_.array(), source_.mode_box(mx, my, mz), mx.first, my.first, mz, visit_);
        const ArrayBox box = ArrayBox{.count = {counted(my), counted(mx), counted(mz)}}.packed(begin);
        visit_box(in[static_cast<std::size_t>(peer)].data(), box, mx.first, my.first, mz, visit_);
        begin += box.numbers();
      });
    }
  }

 private:
  // The modes that rank `from` has in the source and rank `to` in the target: non-empty ranges of my and of mz.
  template <class Piece>
  void for_each_piece(int from, int to, const Piece& piece) const {
    const PencilBox had = source_.layout().box(Pencils::kX, from), wanted = target_.layout().box(Pencils::kX, to);
    const PencilRange mz = common({0, half_}, common(had.along[2], wanted.along[2]));
    if (mz.count() == 0) return;
    const Runs here = runs_of(had.along[1], source_.n(), half_), there = runs_of(wanted.along[1], target_.n(), half_);
    for (std::size_t sign = 0; sign < 2; ++sign) {
      const PencilRange my = common(here[sign], there[sign]);
      if (my.count() > 0) piece(my, mz);
    }
  }

  const PeriodicGrid &source_, &target_;
  const ModeRowVisitor& visit_;
  int half_;
};

}  // namespace

void visit_common_modes(const PeriodicGrid& source, const PeriodicGrid& target, const ModeRowVisitor& visit) {
  Transfer transfer(source, target, visit);
  // Largest number of modes of one mx on a rank, in either grid.
  const auto most = [](const PeriodicGrid& grid) {
    const PencilGrid ranks = grid.layout().grid();
    return static_cast<std::size_t>(grid.n() / ranks.rows + 1) *
           static_cast<std::size_t>((grid.half() + 1) / ranks.columns + 1);
  };
  const std::size_t bytes = std::max(most(source), most(target)) * sizeof(Complex);
  const int half = transfer.half();
  const int batch =
      static_cast<int>(std::clamp<std::size_t>(source.message_bytes() / bytes, 1, static_cast<std::size_t>(half)));
  for (const PencilRange& run : {PencilRange{0, half}, PencilRange{1 - half, 0}}) {
    for (int first = run.first; first < run.end; first += batch) {
      transfer.run({first, std::min(first + batch, run.end)});
    }
  }
}

namespace {

// Part of a line along z.
struct Piece {
  std::uint64_t first;  // site
  int count;
  int ix, iy, iz;
  std::size_t begin;  // in the message
};

// The parts of the sites `wanted` on a rank with the points `box`, in order.
std::vector<Piece> cut(const PencilBox& box, const Share& wanted, int n) {
  std::vector<Piece> pieces;
  if (wanted.size() == 0 || box.cells() == 0) return pieces;
  const auto side = static_cast<std::uint64_t>(n);
  const auto first_line = wanted.first / side, last_line = (wanted.end - 1) / side;
  const int first_x = std::max(box.along[0].first, static_cast<int>(first_line / side));
  const int last_x = std::min(box.along[0].end - 1, static_cast<int>(last_line / side));
  std::size_t begin = 0;
  for (int ix = first_x; ix <= last_x; ++ix) {
    for (int iy = box.along[1].first; iy < box.along[1].end; ++iy) {
      const std::uint64_t line = (static_cast<std::uint64_t>(ix) * side + static_cast<std::uint64_t>(iy)) * side;
      const std::uint64_t first = std::max(line, wanted.first), end = std::min(line + side, wanted.end);
      if (first >= end) continue;
      const auto count = static_cast<int>(end - first);
      pieces.push_back({first, count, ix, iy, static_cast<int>(first - line), begin});
      begin += static_cast<std::size_t>(count);
    }
  }
  return pieces;
}

// Round `round` of `rounds` of a share.
Share part_of(const Share& share, std::uint64_t round, std::uint64_t rounds) {
  return {share.first + share.size() * round / rounds, share.first + share.size() * (round + 1) / rounds};
}

// The values at the sites `wanted` that this rank has.
std::vector<double> packed(const PeriodicGrid& field, const Share& wanted) {
  const std::vector<Piece> pieces = cut(field.points(), wanted, field.n());
  std::vector<double> message(pieces.empty() ? 0 : pieces.back().begin + static_cast<std::size_t>(pieces.back().count));
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    std::copy_n(field.row(piece.ix, piece.iy) + piece.iz, piece.count, message.data() + piece.begin);
  }
  return message;
}

void visit_round(const PeriodicGrid& field, const SiteVisitor& visit, std::uint64_t round, std::uint64_t rounds) {
  const int ranks = field.ranks().size(), me = field.ranks().rank();
  const auto wanted = [&](int rank) { return part_of(lattice_share(field, rank), round, rounds); };
  std::vector<std::vector<double>> out(static_cast<std::size_t>(ranks));
  for (int peer = 0; peer < ranks; ++peer)
    if (peer != me) out[static_cast<std::size_t>(peer)] = packed(field, wanted(peer));
  const std::vector<std::vector<double>> in = exchange_all(field.ranks(), std::move(out));
  for (int peer = 0; peer < ranks; ++peer) {
    const std::vector<Piece> pieces = cut(field.layout().box(Pencils::kReal, peer), wanted(me), field.n());
    const double* const message = peer == me ? nullptr : in[static_cast<std::size_t>(peer)].data();
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const Piece& piece = pieces[i];
      visit(piece.first, piece.count, message ? message + piece.begin : field.row(piece.ix, piece.iy) + piece.iz);
    }
  }
}

}  // namespace

Share lattice_share(const PeriodicGrid& grid, int rank) {
  const auto n = static_cast<std::uint64_t>(grid.n());
  return share_of(n * n * n, rank, grid.ranks().size());
}

void visit_share(const PeriodicGrid& field, const SiteVisitor& visit) {
  const int ranks = field.ranks().size();
  const std::uint64_t bytes =
      lattice_share(field, ranks - 1).size() * sizeof(double);  // the last share is as long as any
  const std::uint64_t rounds = ranks == 1 ? 1 : bytes / std::max<std::size_t>(field.message_bytes(), 1) + 1;
  for (std::uint64_t round = 0; round < rounds; ++round) visit_round(field, visit, round, rounds);
}

}  // namespace maki
