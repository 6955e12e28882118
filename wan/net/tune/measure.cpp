#include "wan/net/tune/measure.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "wan/net/socket/tcp.hpp"

namespace maki::wan {

// ---- what the kernels allow ----------------------------------------------------------------------------------------

namespace {

std::vector<std::string> words_of(const std::string& name) {
  std::ifstream file("/proc/sys/net/" + name);
  std::vector<std::string> words;
  for (std::string word; file >> word;) words.push_back(word);
  return words;
}

std::uint64_t number_at(const std::string& name, std::size_t place) {
  const std::vector<std::string> words = words_of(name);
  if (place >= words.size()) return 0;
  const long long number = std::atoll(words[place].c_str());
  return number > 0 ? static_cast<std::uint64_t>(number) : 0;
}

// The kernel's list may include some that only an administrator may use: try each.
std::vector<std::string> usable_congestions() {
  std::vector<std::string> usable;
  const Socket probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  for (const std::string& name : words_of("ipv4/tcp_available_congestion_control")) {
    if (setsockopt(probe.descriptor(), IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) ==
        0)
      usable.push_back(name);
  }
  return usable;
}

std::string megabytes_of(double bytes) { return fmt::format("{:.3g} MB", bytes / 1e6); }

// The next power of two, in whole MiB.
std::uint64_t rounded_up(double bytes) {
  std::uint64_t size = 1 << 20;
  while (static_cast<double>(size) < bytes && size < (std::uint64_t{1} << 31)) size *= 2;
  return std::min(size, (std::uint64_t{1} << 31) - 1);
}

void check_tuning(std::vector<Limit>& limits, const char* name, std::uint64_t bound, const char* defaults, int streams,
                  double in_flight) {
  // About half of a buffer is payload; the rest is the kernel's own.
  const double reach = static_cast<double>(bound) / 2 * streams;
  if (bound == 0 || reach >= in_flight) return;
  limits.push_back(
      {fmt::format(
           "net.ipv4.{} lets {} streams hold {} of payload, and rate times round trip with room for recovery is "
           "{}",
           name, streams, megabytes_of(reach), megabytes_of(in_flight)),
       fmt::format("sysctl -w net.ipv4.{}=\"{} {}\"", name, defaults, rounded_up(2 * in_flight / streams))});
}

}  // namespace

bool KernelLimits::allows_bbr() const { return std::ranges::find(congestions, "bbr") != congestions.end(); }

KernelLimits KernelLimits::of_this_machine() {
  KernelLimits limits;
  limits.rmem_max = number_at("core/rmem_max", 0);
  limits.wmem_max = number_at("core/wmem_max", 0);
  limits.tcp_rmem_max = number_at("ipv4/tcp_rmem", 2);
  limits.tcp_wmem_max = number_at("ipv4/tcp_wmem", 2);
  limits.slow_start_after_idle = number_at("ipv4/tcp_slow_start_after_idle", 0) == 1;
  const std::vector<std::string> congestion = words_of("ipv4/tcp_congestion_control");
  if (!congestion.empty()) limits.congestion = congestion.front();
  limits.congestions = usable_congestions();
  return limits;
}

namespace {

std::vector<Limit> memory_limits(const KernelLimits& kernel, const PathSettings& settings, double rate,
                                 double round_trip) {
  std::vector<Limit> limits;
  if (settings.window > 0) return limits;
  const double in_flight = 2 * rate * round_trip;  // in flight once, and again while a loss is repaired
  check_tuning(limits, "tcp_rmem", kernel.tcp_rmem_max, "4096 131072", settings.streams, in_flight);
  check_tuning(limits, "tcp_wmem", kernel.tcp_wmem_max, "4096 16384", settings.streams, in_flight);
  return limits;
}

}  // namespace

bool memory_holds_back(const KernelLimits& kernel, const PathSettings& settings, double rate, double round_trip) {
  return !memory_limits(kernel, settings, rate, round_trip).empty();
}

std::vector<Limit> limits_of(const KernelLimits& kernel, const PathSettings& settings, double rate, double round_trip) {
  std::vector<Limit> limits = memory_limits(kernel, settings, rate, round_trip);
  const auto check_window = [&](const char* name, std::uint64_t bound) {
    if (settings.window == 0 || bound == 0 || bound >= settings.window) return;
    limits.push_back(
        {fmt::format("net.core.{} cuts the window of {} to {}", name,
                     megabytes_of(static_cast<double>(settings.window)), megabytes_of(static_cast<double>(bound))),
         fmt::format("sysctl -w net.core.{}={}", name, rounded_up(static_cast<double>(settings.window)))});
  };
  check_window("rmem_max", kernel.rmem_max);
  check_window("wmem_max", kernel.wmem_max);
  const std::string& congestion = settings.congestion.empty() ? kernel.congestion : settings.congestion;
  // BBR keeps its model of the link during a pause.
  if (kernel.slow_start_after_idle && congestion != "bbr" && round_trip > 0.005) {
    limits.push_back({fmt::format("with {}, streams start slowly again after each pause", congestion),
                      "sysctl -w net.ipv4.tcp_slow_start_after_idle=0"});
  }
  if (!kernel.allows_bbr() && round_trip > 0.005) {
    limits.push_back({"the congestion control bbr, which bears losses better, cannot be used here",
                      "modprobe tcp_bbr && sysctl -w net.ipv4.tcp_allowed_congestion_control=\"" +
                          (congestion.empty() ? std::string("cubic") : congestion) + " bbr\""});
  }
  return limits;
}

// ---- the measurement -----------------------------------------------------------------------------------------------

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

namespace {

constexpr std::size_t kSizes[] = {1'000'000, 8'000'000, 64'000'000, 512'000'000};
constexpr std::size_t kBytesAfterPause = 64'000'000;

std::string megabytes(std::size_t bytes) { return fmt::format("{:.4g} MB", 1e-6 * static_cast<double>(bytes)); }

class Measurement {
 public:
  Measurement(MeasuredLink& link, const BenchOptions& options) : link_(link), options_(options), begin_(link.now()) {}

  BenchResult run(const Trial& trial) {
    link_.use(trial);
    latency();
    warm_up();
    const CpuUse before = link_.cpu();
    for (const std::size_t bytes : kSizes) {
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

  // Doubles the size until it takes a second: the windows have opened, and the rate is known.
  void warm_up() {
    std::size_t bytes = 256 << 10;
    double seconds = 0;
    for (;;) {
      seconds = link_.transfer(Way::kBoth, bytes).slower();
      if (seconds > std::max(0.3, 4 * result_.latency.least) || bytes * 2 > kBytesAfterPause) break;
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
    std::size_t bytes = kBytesAfterPause;
    while (bytes > 1'000'000 && expected(bytes) > 5) bytes /= 2;
    const auto once = [&](Way way) {
      link_.rest(kSilence);
      return link_.transfer(way, bytes).slower();
    };
    result_.after_pause = {bytes, 1, once(Way::kOut), once(Way::kIn), 0};
    result_.after_pause.both = once(Way::kBoth);
    options_.progress(fmt::format("  {} after {:.3g} s of silence: {:.4g} s out, {:.4g} s in", megabytes(bytes),
                                  kSilence, result_.after_pause.out, result_.after_pause.in));
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
