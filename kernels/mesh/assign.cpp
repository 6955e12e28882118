#include "kernels/mesh/assign.hpp"

#include <string>

#include "kernels/error.hpp"

namespace maki {
namespace {

std::size_t counts_of(int cells) {
  const auto m = static_cast<std::size_t>(cells);
  return MassCounter::makes_masses() ? 0 : m * m * m;
}

}  // namespace

double assigner_bytes(int cells, double particles) {
  const double m = cells;
  const double counts = MassCounter::makes_masses() ? 0 : sizeof(std::uint64_t) * m * m * (m + 2);
  return counts + counter_bytes(m * m, particles);
}

MassAssigner::MassAssigner(int cells, Assignment cloud, RealFft3d* lender)
    : cells_(cells), cloud_(cloud), counter_(cloud) {
  if (cells < 8 || cells % 2)
    throw Error("a mesh of " + std::to_string(cells) + " cells a side", "it has to be even and at least 8",
                "choose an even number from 8 up");
  const auto m = static_cast<std::size_t>(cells), counts = counts_of(cells), row = m + 2;
  if (!lender) own_counts_.resize(counts);
  counts_ = lender && counts > 0 ? static_cast<std::uint64_t*>(lender->lend(counts * sizeof(std::uint64_t)))
                                 : own_counts_.data();
  rows_.assign(m * m, 1);
  box_ = {{{0, 0, 0}, {m, m, m}, {m * m, m}, 0, {m * row, row}}};
}

std::size_t MassAssigner::bytes() const { return counter_.bytes() + own_counts_.capacity() * sizeof(std::uint64_t); }

void MassAssigner::assign(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                          float* mesh, float* shifted) {
  counter_.take(stream, particles, n, unit, MeshBox::whole(cells_));
  for (float* const out : {mesh, shifted}) {
    if (!out) continue;
    counter_.count(stream, out == shifted, counts_, {rows_.data(), box_, unit, out});
    if (!MassCounter::makes_masses()) counts_to_masses(stream, box_.front(), unit, counts_, out);
  }
}

}  // namespace maki
