#include "src/gravity/site_agreement.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/error.hpp"

namespace maki {

namespace {

// The part of the tolerance that is used, as the next step's error is extrapolated.
constexpr double kToleranceUse = 0.7;
// The largest reference error where fresh lists are nearly exact.
constexpr double kMostExact = 1e-4;
// Cost of walking all groups again, in interactions a particle.
constexpr double kRewalkCost = 200;
// The usual imbalance of domains cut by cost.
constexpr double kUsualImbalance = 1.02;

}  // namespace

StepSums StepSums::over_ranks(const Communicator& ranks, StepSums mine) {
  mine.largest = mine.interactions;
  mine.ranks = 1;
  StepSums sums;
  sums.ranks = 0;
  for (const StepSums& s : gathered(ranks, mine)) sums.add(s);
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

void SiteAgreement::decided(std::uint64_t bits) { digest_ = XXH3_64bits_withSeed(&bits, sizeof bits, digest_); }
// Values are compared in single precision, as machines may round the last bits of a logarithm differently.
void SiteAgreement::decided(double value) {
  decided(std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<float>(value))));
}

void SiteAgreement::begin() {
  if (begun_) ++number_;
  begun_ = true;
  mine_ = {};
  mine_x_.clear();
  if (delay() > 0 && number_ >= 3) take(number_ - 2);  // the sums of the first evaluation are known
}

std::uint64_t SiteAgreement::requests() const {
  if (delay() == 0) return my_requests_;
  std::uint64_t all = 0;
  for (const SiteMeasures& step : all_) all |= step.requests;
  return all;
}

// Messages name each site's newest restart. One that another followed within a long step is not named; an earlier one
// is the common one then.
void SiteAgreement::find_common_restart() {
  for (std::size_t i = 0; i < all_.size(); ++i) restarts_[i].insert(all_[i].restart);
  const auto all_have = [this](std::uint64_t step) {
    return std::all_of(restarts_.begin(), restarts_.end(), [step](const auto& steps) { return steps.contains(step); });
  };
  for (const std::uint64_t step : restarts_.front())
    if (all_have(step)) common_restart_ = step;
  for (std::set<std::uint64_t>& steps : restarts_) steps.erase(steps.begin(), steps.lower_bound(common_restart_));
}

void SiteAgreement::publish() {
  mine_.digest = digest_;
  mine_.requests = my_requests_;
  mine_.restart = my_restart_;
  mine_.samples = mine_x_.size();
  sites::Message message(sizeof mine_ + mine_x_.size() * sizeof(std::uint32_t));
  std::memcpy(message.data(), &mine_, sizeof mine_);
  if (!mine_x_.empty()) std::memcpy(message.data() + sizeof mine_, mine_x_.data(), message.size() - sizeof mine_);
  sites_.publish(sites::Phase::kSums, number_, message);
  if (delay() == 0 || number_ == 0) take(number_);
}

void SiteAgreement::take(std::uint64_t number) {
  const std::vector<sites::Message> messages = sites_.collect(sites::Phase::kSums, number);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const sites::Message& message = messages[i];
    SiteMeasures& step = all_[i];
    if (message.size() < sizeof step)
      throw Error("a site's sums are too short", "", "run the same version at all sites");
    std::memcpy(&step, message.data(), sizeof step);
    if (message.size() - sizeof step != step.samples * sizeof(std::uint32_t))
      throw Error("a site's sums have another size than they say", "", "run the same version at all sites");
    if (step.samples > 0) {
      x_[i].resize(step.samples);
      std::memcpy(x_[i].data(), message.data() + sizeof step, step.samples * sizeof(std::uint32_t));
    }
    if (step.digest != all_[0].digest)
      throw Error("sites " + sites_.name(0) + " and " + sites_.name(static_cast<int>(i)) + " are not in step",
                  "they have come to different step lengths, rebuilds or slabs by evaluation " + std::to_string(number),
                  "use the same program on processors that round alike, and resume from the last restart");
  }
  known_ = number;
  if (delay() > 0) find_common_restart();
}

StepSums SiteAgreement::tree() const {
  StepSums sums;
  sums.ranks = 0;
  for (const SiteMeasures& step : all_) sums.add(step.tree);
  return sums;
}

double SiteAgreement::farthest(double t, double reach_length) {
  if (delay() == 0) return reach_length;
  mine_.time = t;
  mine_.reach_length = reach_length;
  if (known_) return farthest_by(t);
  return sites_.joined(sites::Phase::kSums, 0, reach_length, [](double& far, double one) { far = std::max(far, one); });
}

double SiteAgreement::farthest_by(double t) const {
  double reach_length = 0, momentum = 0, acceleration = 0;
  for (const SiteMeasures& step : all_) {
    reach_length = std::max(reach_length, step.reach_length);
    momentum = std::max(momentum, step.momentum);
    acceleration = std::max(acceleration, step.acceleration);
  }
  // Momenta are half a step older than positions, and accelerations grow: twice the gain at the known acceleration.
  const double since = t - all_.front().time;
  return reach_length + since * (momentum + 2 * acceleration * since);
}

std::vector<sites::SiteWork> SiteAgreement::works() const {
  std::vector<sites::SiteWork> works;
  for (std::size_t i = 0; i < all_.size(); ++i)
    works.push_back({all_[i].force_cost, all_[i].work, all_[i].particles, x_[i]});
  return works;
}

}  // namespace maki
