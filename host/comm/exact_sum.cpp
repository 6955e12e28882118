#include "host/comm/exact_sum.hpp"

#include <bit>
#include <cmath>
#include <vector>

namespace maki {
namespace {

constexpr std::int64_t kMask = 0xffffffff;

}  // namespace

void ExactSum::add(double value) {
  if (!std::isfinite(value)) {
    not_finite_ += value;
    return;
  }
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int biased = static_cast<int>(bits >> 52 & 0x7ff);
  std::uint64_t mantissa = bits & 0xfffffffffffff;
  if (biased > 0) mantissa |= std::uint64_t{1} << 52;
  const int place = (biased > 0 ? biased : 1) - 1075 + kBias;  // of the mantissa's last bit
  const int shift = place % 32;
  const auto low = static_cast<std::int64_t>(mantissa << shift & kMask);
  const std::uint64_t rest = mantissa >> (32 - shift);  // at most 52 bits
  const auto middle = static_cast<std::int64_t>(rest & kMask), high = static_cast<std::int64_t>(rest >> 32);
  const std::int64_t sign = bits >> 63 ? -1 : 1;
  std::int64_t* word = &words_[static_cast<std::size_t>(place / 32)];
  word[0] += sign * low;
  word[1] += sign * middle;
  word[2] += sign * high;
  if (++pending_ == 1u << 30) carry();
}

void ExactSum::add(const ExactSum& other) {
  ExactSum its = other;
  its.carry();
  carry();
  for (int i = 0; i < kWords; ++i) words_[i] += its.words_[i];
  pending_ = 1;
  not_finite_ += its.not_finite_;
}

// Reduces all words but the last, which has the sign, to 0 ... 2^32 - 1.
void ExactSum::carry() {
  std::int64_t over = 0;
  for (int i = 0; i + 1 < kWords; ++i) {
    const std::int64_t word = words_[i] + over;
    words_[i] = word & kMask;
    over = word >> 32;
  }
  words_[kWords - 1] += over;
  pending_ = 0;
}

void ExactSum::over_ranks(const Communicator& ranks, std::span<ExactSum> sums) {
  if (ranks.size() == 1) return;
  std::vector<std::uint64_t> words;
  std::vector<double> not_finite;
  for (ExactSum& sum : sums) {
    sum.carry();
    for (const std::int64_t word : sum.words_) words.push_back(static_cast<std::uint64_t>(word));
    not_finite.push_back(sum.not_finite_);
  }
  ranks.sum(words);  // modulo 2^64: two's complement
  ranks.sum(not_finite);
  for (std::size_t s = 0; s < sums.size(); ++s) {
    for (int i = 0; i < kWords; ++i) sums[s].words_[i] = static_cast<std::int64_t>(words[s * kWords + i]);
    sums[s].not_finite_ = not_finite[s];
    sums[s].carry();
  }
}

double ExactSum::value() const {
  if (not_finite_ != 0) return not_finite_;
  ExactSum sum = *this;
  sum.carry();
  const bool negative = sum.words_[kWords - 1] < 0;
  if (negative) {
    for (std::int64_t& word : sum.words_) word = -word;
    sum.carry();
  }
  int top = kWords - 1;
  while (top >= 0 && sum.words_[top] == 0) --top;
  if (top < 0) return 0;
  // The leading 64 bits, the last of them set where anything below is non-zero (sticky bit): rounds like the whole
  // number. (Subnormal sums have fewer bits than a double holds, and are exact.)
  const auto word = [&](int i) { return i < 0 ? std::uint64_t{0} : static_cast<std::uint64_t>(sum.words_[i]); };
  const int zeros = std::countl_zero(static_cast<std::uint32_t>(word(top)));
  std::uint64_t leading = word(top) << 32 | word(top - 1);
  std::uint64_t below = word(top - 2);
  if (zeros > 0) {
    leading = leading << zeros | below >> (32 - zeros);
    below = below << zeros & kMask;
  }
  for (int i = top - 3; i >= 0; --i) below |= word(i);
  if (below != 0) leading |= 1;
  const double size = std::ldexp(static_cast<double>(leading), 32 * (top - 1) - kBias - zeros);
  return negative ? -size : size;
}

void exact_sum(const Communicator& ranks, std::span<DoubleDouble> sums) {
  if (ranks.size() == 1 || sums.empty()) return;
  const auto count = static_cast<std::size_t>(ranks.size());
  std::vector<DoubleDouble> all(count * sums.size());
  ranks.all_gather(sums.data(), all.data(), sums.size_bytes());
  for (std::size_t s = 0; s < sums.size(); ++s) {
    ExactSum total;
    for (std::size_t r = 0; r < count; ++r) {
      total.add(all[r * sums.size() + s].hi);
      total.add(all[r * sums.size() + s].lo);
    }
    const double high = total.value();
    total.add(-high);
    sums[s] = std::isfinite(high) ? DoubleDouble(high, total.value()) : DoubleDouble(high);
  }
}

}  // namespace maki
