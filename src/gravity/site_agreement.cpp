#include "src/gravity/site_agreement.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
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
// The longest pause in keeping lists.
constexpr int kLongestPause = 63;
// The usual imbalance of domains cut by cost.
constexpr double kUsualImbalance = 1.02;
// Above all measures; sums and squares of such numbers are finite.
constexpr double kAboveAll = 1e150;

// False for NaN.
bool is_measure(double value) { return value >= 0 && value < kAboveAll; }
bool is_mean_square(double value) { return value == -1 || is_measure(value); }

bool are_measures(std::initializer_list<double> values) { return std::ranges::all_of(values, is_measure); }

bool are_sums(const StepSums& s) {
  return are_measures({s.interactions, s.members, s.groups, s.rewalked, s.difference, s.fresh_difference, s.reference,
                       s.batched, s.outgrown, s.largest, s.ranks});
}

// Whether another site's numbers can be measures of a run.
bool are_sums(const SiteMeasures& m) {
  return are_sums(m.tree) && is_mean_square(m.mean_square_momentum) && is_mean_square(m.mean_square_acceleration) &&
         are_measures({m.acceleration, m.momentum, m.outgrown, m.asks_rebuild, m.force_cost, m.work,
                       m.last_force_seconds, m.reach_length, std::abs(m.mean_logarithm), std::abs(m.time)});
}

// Whether two times are equal but for rounding, which near t = 0 is that of the earlier time `before`.
bool is_one_time(double a, double b, double before) {
  return std::abs(a - b) <= 1e-6 * (std::abs(a) + std::abs(b) + std::abs(before));
}

[[noreturn]] void refuse_sums(const std::string& site, const std::string& why) {
  throw Error("the sums that site " + site + " sends cannot be taken", why, "run the same version at all sites");
}

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
  is_first_ = true;
}

bool RebuildJudge::wants_rebuild(const StepSums& sums, double theta, int ahead) {
  const double error = sums.probe_error(), growth = std::max(0.0, error - previous_error_);
  previous_error_ = error;
  const double longer = std::max(0.0, sums.interactions - fresh_pairs_) / sums.particles();
  const double dearer = longer + kRewalkCost * sums.rewalked / std::max(1.0, sums.groups);
  if (std::exchange(is_first_, false))
    left_ = pause_ = dearer > kRebuildCost ? std::min(2 * pause_ + 1, kLongestPause) : 0;
  excess_ += std::max(0.0, sums.imbalance() - attainable_) * sums.mean_list() + dearer;
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

// Messages name each site's newest restart. One that is followed by another at the next step is in no message, and
// so an earlier one is common.
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

void SiteAgreement::read(std::size_t site, const sites::Message& message) {
  const std::string& name = sites_.name(static_cast<int>(site));
  SiteMeasures& step = all_[site];
  if (message.size() < sizeof step) refuse_sums(name, "they are too short");
  std::memcpy(&step, message.data(), sizeof step);
  const std::size_t bytes = message.size() - sizeof step;
  if (step.samples > bytes / sizeof(std::uint32_t) || bytes != step.samples * sizeof(std::uint32_t))
    refuse_sums(name, "they have another size than they say");
  if (static_cast<int>(site) != sites_.me() && !are_sums(step))
    refuse_sums(name, "a number among them is negative or not finite");
  if (step.samples == 0) return;
  x_[site].resize(step.samples);
  std::memcpy(x_[site].data(), message.data() + sizeof step, bytes);
}

void SiteAgreement::take(std::uint64_t number) {
  const std::vector<sites::Message> messages = sites_.collect(sites::Phase::kSums, number);
  const SiteMeasures& here = all_[static_cast<std::size_t>(sites_.me())];
  const double before = here.time;
  for (std::size_t i = 0; i < messages.size(); ++i) read(i, messages[i]);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const SiteMeasures& step = all_[i];
    if (step.digest != all_[0].digest)
      throw Error("sites " + sites_.name(0) + " and " + sites_.name(static_cast<int>(i)) + " are not in step",
                  "they have come to different step lengths, rebuilds or slabs by evaluation " + std::to_string(number),
                  "use the same program on processors that round alike, and resume from the last restart");
    if (!is_one_time(step.time, here.time, before))
      refuse_sums(sites_.name(static_cast<int>(i)), "they are of another time than those here");
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
  double far = reach_length;
  const auto all = sites_.gather(sites::Phase::kSums, 0, sites::as_bytes_of(reach_length));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& name = sites_.name(static_cast<int>(i));
    const double one = sites::value_of<double>(all[i], name);
    if (!is_measure(one)) refuse_sums(name, "a distance is negative or not finite");
    far = std::max(far, one);
  }
  return far;
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
