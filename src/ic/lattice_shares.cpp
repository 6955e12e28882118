#include "src/ic/periodic_grid.hpp"

#include <algorithm>
#include <vector>

namespace maki {

namespace {

// Part of a line along z.
struct Piece {
  std::uint64_t first;  // site
  int count;
  int ix, iy, iz;
  std::size_t begin;  // in the message
};

// What a rank that holds the points `box` has of the sites `wanted`, in their order; returns the number of sites.
std::size_t cut(const PencilBox& box, const Share& wanted, int n, std::vector<Piece>& pieces) {
  std::size_t begin = 0;
  pieces.clear();
  if (wanted.size() == 0 || box.cells() == 0) return 0;
  const auto side = static_cast<std::uint64_t>(n);
  const auto first_line = wanted.first / side, last_line = (wanted.end - 1) / side;
  const int first_x = std::max(box.along[0].first, static_cast<int>(first_line / side));
  const int last_x = std::min(box.along[0].end - 1, static_cast<int>(last_line / side));
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
  return begin;
}

// Round `round` of `rounds` of a share.
Share part_of(const Share& share, std::uint64_t round, std::uint64_t rounds) {
  return {share.first + share.size() * round / rounds, share.first + share.size() * (round + 1) / rounds};
}

class Delivery {
 public:
  Delivery(const PeriodicGrid& field, const SiteVisitor& visit) : field_(field), visit_(visit) {}

  void run(std::uint64_t round, std::uint64_t rounds) {
    const int ranks = field_.ranks().size(), me = field_.ranks().rank();
    std::vector<std::size_t> out_begin{0}, in_begin{0};
    const Share mine = part_of(sites_of(field_, me), round, rounds);
    sent_.clear();
    for (int peer = 0; peer < ranks; ++peer) {
      const Share its = part_of(sites_of(field_, peer), round, rounds);
      if (peer != me) pack(its);
      out_begin.push_back(sent_.size());
      in_begin.push_back(in_begin.back() +
                         (peer == me ? 0 : cut(field_.layout().box(Pencils::kReal, peer), mine, field_.n(), pieces_)));
    }
    received_.resize(in_begin.back());
    std::vector<Communicator::Outgoing> out;
    std::vector<Communicator::Incoming> in;
    for (int peer = 0; peer < ranks; ++peer) {
      const auto p = static_cast<std::size_t>(peer);
      out.push_back({peer, sent_.data() + out_begin[p], (out_begin[p + 1] - out_begin[p]) * sizeof(double)});
      in.push_back({peer, received_.data() + in_begin[p], (in_begin[p + 1] - in_begin[p]) * sizeof(double)});
    }
    field_.ranks().exchange(out, in);
    for (int peer = 0; peer < ranks; ++peer) {
      cut(field_.layout().box(Pencils::kReal, peer), mine, field_.n(), pieces_);
      visit_pieces(peer == me ? nullptr : received_.data() + in_begin[static_cast<std::size_t>(peer)]);
    }
  }

 private:
  void pack(const Share& wanted) {
    const std::size_t begin = sent_.size();
    sent_.resize(begin + cut(field_.points(), wanted, field_.n(), pieces_));
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const Piece& piece = pieces_[i];
      std::copy_n(field_.row(piece.ix, piece.iy) + piece.iz, piece.count, sent_.data() + begin + piece.begin);
    }
  }

  // From the message, or from the field itself.
  void visit_pieces(const double* message) const {
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const Piece& piece = pieces_[i];
      visit_(piece.first, piece.count, message ? message + piece.begin : field_.row(piece.ix, piece.iy) + piece.iz);
    }
  }

  const PeriodicGrid& field_;
  const SiteVisitor& visit_;
  std::vector<double> sent_, received_;
  std::vector<Piece> pieces_;
};

}  // namespace

Share sites_of(const PeriodicGrid& grid, int rank) {
  const auto n = static_cast<std::uint64_t>(grid.n());
  return share_of(n * n * n, rank, grid.ranks().size());
}

void visit_share(const PeriodicGrid& field, const SiteVisitor& visit) {
  const int ranks = field.ranks().size();
  const std::uint64_t bytes = sites_of(field, ranks - 1).size() * sizeof(double);  // the last share is as long as any
  const std::uint64_t rounds = ranks == 1 ? 1 : bytes / std::max<std::size_t>(field.messages().bytes, 1) + 1;
  Delivery delivery(field, visit);
  for (std::uint64_t round = 0; round < rounds; ++round) delivery.run(round, rounds);
}

}  // namespace maki
