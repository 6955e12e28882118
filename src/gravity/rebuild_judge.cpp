#include "src/gravity/rebuild_judge.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace maki {
namespace {

// The part of the tolerance that is used: the next step's error is a guess.
constexpr double kToleranceUse = 0.7;
// The most that the reference error is where fresh lists are nearly exact.
constexpr double kMostExact = 1e-4;
// What a rebuild and a repair cost, in interactions a particle: kept lists that have cost more than a rebuild go.
constexpr double kRebuildCost = 350;
constexpr double kRewalkCost = 200;
// What domains cut by cost usually reach.
constexpr double kUsualImbalance = 1.02;

}  // namespace

StepSums StepSums::over_ranks(const Communicator& ranks, StepSums mine) {
  mine.largest = mine.interactions;
  mine.ranks = 1;
  std::vector<StepSums> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(&mine, all.data(), sizeof mine);
  StepSums sums;
  sums.ranks = 0;
  for (const StepSums& s : all) sums.add(s);
  return sums;
}

void StepSums::add(const StepSums& s) {
  interactions += s.interactions;
  members += s.members;
  groups += s.groups;
  rewalked += s.rewalked;
  difference += s.difference;
  fresh_difference += s.fresh_difference;
  reference += s.reference;
  batched += s.batched;
  outgrown += s.outgrown;
  largest = std::max(largest, s.largest);
  ranks += s.ranks;
}

double StepSums::relative(double difference_squared) const {
  return reference > 0 ? std::sqrt(difference_squared / reference) : 0;
}

double reference_error(double fresh_error, double theta) {
  return std::max(fresh_error, std::min(kMostExact, std::pow(theta, 4) / 256));
}

void RebuildJudge::begin(const StepSums& sums, bool balanced) {
  fresh_pairs_ = sums.interactions;
  previous_error_ = sums.probe_error();
  attainable_ = balanced ? sums.imbalance() : kUsualImbalance;
  excess_ = std::max(0.0, sums.imbalance() - attainable_) * sums.mean_list();
}

bool RebuildJudge::wants_rebuild(const StepSums& sums, double theta, int ahead) {
  const double error = sums.probe_error(), growth = std::max(0.0, error - previous_error_);
  previous_error_ = error;
  const double longer = std::max(0.0, sums.interactions - fresh_pairs_) / sums.particles();
  excess_ += std::max(0.0, sums.imbalance() - attainable_) * sums.mean_list();
  excess_ += longer + kRewalkCost * sums.rewalked / std::max(1.0, sums.groups);
  const double limit = (1 + kToleranceUse * (tolerance_ - 1)) * reference_error(sums.fresh_error(), theta);
  return error + ahead * growth > limit || excess_ > kRebuildCost;
}

}  // namespace maki
