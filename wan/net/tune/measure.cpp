#include "wan/net/tune/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace maki::wan {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

std::string megabytes(std::size_t bytes) { return fmt::format("{:.4g} MB", 1e-6 * static_cast<double>(bytes)); }

class Measurement {
 public:
  Measurement(MeasuredLink& link, const BenchOptions& options) : link_(link), options_(options), begin_(link.now()) {}

  BenchResult run(const Trial& trial) {
    link_.use(trial);
    latency();
    warm_up();
    const CpuUse before = link_.cpu();
    for (const std::size_t bytes : options_.sizes) {
      if (!measure_size(bytes)) result_.left_out.push_back(bytes);
    }
    const CpuUse after = link_.cpu();
    if (moved_ > 0) {
      result_.cpu_here = (after.here - before.here) / moved_ * 1e9;
      result_.cpu_there = (after.there - before.there) / moved_ * 1e9;
    }
    after_pause();
    return result_;
  }

 private:
  double time_left() const { return options_.seconds - (link_.now() - begin_); }

  void latency() {
    const double first = link_.round_trips(2).back();
    const int count = std::clamp(static_cast<int>(0.05 * options_.seconds / std::max(first, 1e-6)), 8, 2000);
    std::vector<double> times = link_.round_trips(count);
    std::sort(times.begin(), times.end());
    const auto rank = static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(times.size())));
    result_.latency = {count, times.front(), median(times), times[rank - 1]};
  }

  // Twice as much until it takes a second: streams open, and the rate is known.
  void warm_up() {
    std::size_t bytes = 256 << 10;
    double seconds = 0;
    for (;;) {
      seconds = link_.transfer(Way::kBoth, bytes).slower();
      if (seconds > std::max(0.3, 4 * result_.latency.least) || bytes * 2 > options_.bytes_after_pause) break;
      bytes *= 2;
    }
    rate_ = static_cast<double>(bytes) / std::max(seconds - result_.latency.least / 2, 1e-6);
  }

  double expected(std::size_t bytes) const { return result_.latency.least * 2.5 + static_cast<double>(bytes) / rate_; }

  std::vector<double> repeat(Way way, std::size_t bytes, int count) {
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
      times.push_back(link_.transfer(way, bytes).slower());
      moved_ += static_cast<double>(bytes) * (way == Way::kBoth ? 2 : 1);
    }
    return times;
  }

  bool measure_size(std::size_t bytes) {
    const double each = 3 * expected(bytes);
    if (each > std::max(time_left(), 0.4 * options_.seconds)) return false;
    const int count = std::clamp(static_cast<int>(0.25 * options_.seconds / each), 1, 9);
    SizeRow row{bytes, count, 0, 0, 0};
    row.out = median(repeat(Way::kOut, bytes, count));
    row.in = median(repeat(Way::kIn, bytes, count));
    row.both = median(repeat(Way::kBoth, bytes, count));
    rate_ = std::max(rate_, static_cast<double>(bytes) / std::max(row.both - result_.latency.least / 2, 1e-6));
    options_.progress(fmt::format("  {}: {:.4g} MB/s out, {:.4g} in, {:.4g} each way at once", megabytes(bytes),
                                  1e-6 * static_cast<double>(bytes) / row.out,
                                  1e-6 * static_cast<double>(bytes) / row.in,
                                  1e-6 * static_cast<double>(bytes) / row.both));
    result_.rows.push_back(row);
    return true;
  }

  void after_pause() {
    std::size_t bytes = options_.bytes_after_pause;
    while (bytes > 1'000'000 && expected(bytes) > 5) bytes /= 2;
    if (options_.pause <= 0) return;
    const auto once = [&](Way way) {
      link_.rest(options_.pause);
      return link_.transfer(way, bytes).slower();
    };
    result_.after_pause = {bytes, 1, once(Way::kOut), once(Way::kIn), 0};
    result_.after_pause.both = once(Way::kBoth);
    options_.progress(fmt::format("  {} after {:.3g} s of silence: {:.4g} s out, {:.4g} s in", megabytes(bytes),
                                  options_.pause, result_.after_pause.out, result_.after_pause.in));
  }

  MeasuredLink& link_;
  const BenchOptions& options_;
  const double begin_;
  double rate_ = 0, moved_ = 0;
  BenchResult result_;
};

}  // namespace

BenchResult measure(MeasuredLink& link, const Trial& trial, const BenchOptions& options) {
  return Measurement(link, options).run(trial);
}

}  // namespace maki::wan
