#include "src/ic/periodic_grid.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "src/ic/box_messages.hpp"

namespace maki {

namespace {

using Complex = PeriodicGrid::Complex;
using Runs = std::array<PencilRange, 2>;  // of mode numbers: 0 and above, below 0

PencilRange common(const PencilRange& a, const PencilRange& b) {
  return {std::max(a.first, b.first), std::min(a.end, b.end)};
}

// The numbers below `half`, without sign, of the indices `held` of n.
Runs runs_of(const PencilRange& held, int n, int half) {
  const PencilRange negative = common(held, {n - half + 1, n});
  return {common(held, {0, half}), {negative.first - n, negative.end - n}};
}

void visit_box(const ArrayBox& box, const Complex* values, int mx, int my, const PencilRange& mz,
               const ModeRowVisitor& visit) {
  const auto rows = static_cast<int>(box.count[0]), columns = static_cast<int>(box.count[1]);
#pragma omp parallel for collapse(2) schedule(static)
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      visit(mx + j, my + i, mz,
            values + static_cast<std::size_t>(i) * box.step[0] + static_cast<std::size_t>(j) * box.step[1]);
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
    const int me = source_.ranks().rank();
    for (int peer = 0; peer < source_.ranks().size(); ++peer) {
      if (peer == me) continue;
      for_each_piece(me, peer, [&](const PencilRange& my, const PencilRange& mz) {
        messages_.send(peer, source_.mode_box(mx, my, mz));
      });
      for_each_piece(peer, me, [&](const PencilRange& my, const PencilRange& mz) {
        const auto width = static_cast<std::size_t>(mz.count()), rows = static_cast<std::size_t>(mx.count());
        const ArrayBox box = {.count = {static_cast<std::size_t>(my.count()), rows, width},
                              .step = {rows * width, width}};
        messages_.receive(peer, box);
        arriving_.push_back({box, my.first, mz});
      });
    }
    messages_.exchange(source_.ranks(), source_.array());
    for (std::size_t i = 0; i < arriving_.size(); ++i) {
      visit_box(arriving_[i].box, messages_.received(i), mx.first, arriving_[i].my, arriving_[i].mz, visit_);
    }
    messages_.clear();
    arriving_.clear();
    for_each_piece(me, me, [&](const PencilRange& my, const PencilRange& mz) {
      const ArrayBox box = source_.mode_box(mx, my, mz);
      visit_box(box, source_.array() + box.base, mx.first, my.first, mz, visit_);
    });
  }

 private:
  struct Arriving {
    ArrayBox box;
    int my;
    PencilRange mz;
  };

  // The modes that `from` has in the source and `to` in the target: ranges of my and of mz, none of them empty.
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
  BoxMessages messages_;
  std::vector<Arriving> arriving_;
};

}  // namespace

void visit_common_modes(const PeriodicGrid& source, const PeriodicGrid& target, const ModeRowVisitor& visit) {
  Transfer transfer(source, target, visit);
  // Modes of one mx on the fullest rank, in the grid that has more of them there.
  const auto most = [](const PeriodicGrid& grid) {
    const PencilGrid ranks = grid.layout().grid();
    return static_cast<std::size_t>(grid.n() / ranks.rows + 1) *
           static_cast<std::size_t>((grid.half() + 1) / ranks.columns + 1);
  };
  const std::size_t bytes = std::max(most(source), most(target)) * sizeof(Complex);
  const int half = transfer.half();
  const int batch =
      static_cast<int>(std::clamp<std::size_t>(source.messages().bytes / bytes, 1, static_cast<std::size_t>(half)));
  for (const PencilRange& run : {PencilRange{0, half}, PencilRange{1 - half, 0}}) {
    for (int first = run.first; first < run.end; first += batch) {
      transfer.run({first, std::min(first + batch, run.end)});
    }
  }
}

}  // namespace maki
