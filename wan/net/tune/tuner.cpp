#include "wan/net/tune/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace maki::wan {
namespace {

// The gain that justifies a change: measurements scatter by about as much.
constexpr double kWorthIt = 0.97;
// Round trips in seconds: from the first on network queues matter, from the second on the cost of a lost packet and of
// silence.
constexpr double kLongWay = 0.002, kVeryLongWay = 0.01;
constexpr double kOneLine = 0.7;  // of the higher rate: a lower one above it is of the same line
constexpr std::size_t kFirstSize = 256 << 10, kLargestSize = 64'000'000;  // of messages tried; slower links use less

// Rounded to three digits.
double rounded(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return std::round(value / unit) * unit;
}

class Tuner {
 public:
  Tuner(MeasuredLink& link, const TuneOptions& options) : link_(link), options_(options), begin_(link.now()) {}

  Tuned run() {
    size_messages();
    choose_sockets();
    find_pacing();
    refine_pacing();
    add_streams();
    test_silence();
    std::tie(result_.rate_out, result_.rate_in) = rates(result_.best);
    return result_;
  }

 private:
  bool time_for(double share) {
    const bool left = link_.now() - begin_ < share * options_.seconds;
    if (!left) result_.in_time = false;
    return left;
  }

  // A message that takes a few round trips, or half a second, once windows are open: long enough to show the rate.
  void size_messages() {
    link_.use(options_.base);
    const std::vector<double> times = link_.round_trips(4);
    result_.round_trip = *std::min_element(times.begin(), times.end());
    const double enough = std::max(0.5, 4 * result_.round_trip);
    double rate = 0;
    for (int warm = 0; warm < 2 && time_for(0.2);) {
      const double seconds = transfer().slower();
      rate = std::max(rate, rate_of(bytes_, seconds));
      const bool grows = seconds < 0.7 * enough && bytes_ < kLargestSize;
      if (grows)
        bytes_ = std::min(bytes_ * 4, kLargestSize);
      else
        ++warm;
    }
    bytes_ = std::min(kLargestSize, static_cast<std::size_t>(std::max(rate * enough, double{kFirstSize})));
    options_.progress(fmt::format("round trip {:.2f} ms; trying messages of {:.3g} MB both ways at once",
                                  1e3 * result_.round_trip, 1e-6 * static_cast<double>(bytes_)));
  }

  // Measures a trial, unless done before; if it takes less than `worth` of the best's time it becomes the best. Whether
  // it did.
  bool consider(const Trial& trial, bool reconnects = true, double worth = kWorthIt) {
    for (const Tried& before : result_.tried) {
      if (before.trial == trial) return false;
    }
    Tried tried{trial, bytes_, {}, 0};
    try {
      tried.warm = measure(trial, reconnects);
    } catch (const PathError&) {
      throw;
    } catch (const Error& error) {  // refused by one of the kernels
      options_.progress(fmt::format("  {}: {}", describe(trial), error.what()));
      return false;
    }
    const bool better = result_.tried.empty() || tried.warm.slower() < worth * result_.best.warm.slower();
    const auto [out, in] = rates(tried);
    options_.progress(fmt::format("  {}: {:.0f} ms, {:.4g} MB/s out, {:.4g} MB/s in{}", describe(trial),
                                  1e3 * tried.warm.slower(), 1e-6 * out, 1e-6 * in, better ? " *" : ""));
    result_.tried.push_back(tried);
    if (better) result_.best = tried;
    return better;
  }

  // Medians: occasional stalls are the network's.
  Timing measure(const Trial& trial, bool reconnects) {
    link_.use(trial);
    if (reconnects) link_.transfer(Way::kBoth, bytes_);  // opens the streams' windows
    std::vector<double> out, in;
    for (int i = 0; i < (options_.thorough ? 5 : 3); ++i) {
      const Timing timing = transfer();
      out.push_back(timing.out);
      in.push_back(timing.in);
    }
    return {median(out), median(in)};
  }

  Timing transfer() {
    const Timing timing = link_.transfer(Way::kBoth, bytes_);
    peak_out_ = std::max(peak_out_, rate_of(bytes_, timing.out));
    peak_in_ = std::max(peak_in_, rate_of(bytes_, timing.in));
    return timing;
  }

  // Without the one-way delay.
  double rate_of(std::size_t bytes, double seconds) const {
    return static_cast<double>(bytes) / std::max(seconds - result_.round_trip / 2, 1e-6);
  }
  std::pair<double, double> rates(const Tried& tried) const {
    return {rate_of(tried.bytes, tried.warm.out), rate_of(tried.bytes, tried.warm.in)};
  }

  // On a very long link BBR, if both kernels allow it: it tolerates losses better, and keeps its rate over a silence.
  // Enough streams to hold twice the data in flight within the kernels' bounds, so that one that repairs a loss does
  // not hold back the others; a window if even the most streams do not suffice.
  void choose_sockets() {
    if (!options_.keep_congestion && result_.round_trip > kVeryLongWay && link_.kernel_here().allows_bbr() &&
        link_.kernel_there().allows_bbr() && !uses_bbr(options_.base.settings))
      consider(with_sockets("bbr"));
    if (result_.tried.empty()) consider(with_sockets(options_.base.settings.congestion));
  }

  Trial with_sockets(const std::string& congestion) const {
    Trial trial = options_.base;
    trial.settings.congestion = congestion;
    if (!options_.keep_streams) trial.settings.streams = enough_streams(trial.settings);
    if (!options_.keep_window) trial.settings.window = needed_window(trial.settings);
    return trial;
  }

  bool uses_bbr(const PathSettings& settings) const {
    if (!settings.congestion.empty()) return settings.congestion == "bbr";
    return link_.kernel_here().congestion == "bbr" && link_.kernel_there().congestion == "bbr";
  }

  // Congestion controls other than BBR take a lost packet for congestion: more streams, so that it slows only a small
  // part.
  int enough_streams(PathSettings settings) const {
    if (result_.round_trip < kLongWay) return settings.streams;
    settings.streams = result_.round_trip > kVeryLongWay && !uses_bbr(settings) ? 32 : 8;
    while (2 * settings.streams <= kMaxStreams && held_back(settings)) settings.streams *= 2;
    return settings.streams;
  }

  bool held_back(const PathSettings& settings) const {
    const auto short_of_memory = [&](const KernelLimits& kernel) {
      return memory_holds_back(kernel, settings, highest_rate(), result_.round_trip);
    };
    return short_of_memory(link_.kernel_here()) || short_of_memory(link_.kernel_there());
  }

  // settings.window if the kernels' own tuning suffices, or no window large enough is allowed.
  std::size_t needed_window(const PathSettings& settings) const {
    if (!held_back(settings)) return settings.window;
    const double share = 2 * highest_rate() * result_.round_trip / settings.streams;
    std::size_t window = 128 << 10;
    while (static_cast<double>(window) < share) window *= 2;
    const auto allowed = [&](const KernelLimits& kernel) {
      return kernel.rmem_max >= window && kernel.wmem_max >= window;
    };
    return allowed(link_.kernel_here()) && allowed(link_.kernel_there()) ? window : settings.window;
  }

  double highest_rate() const { return std::max(peak_out_, peak_in_); }

  // Pacing may have raised the rate, which then needs more streams.
  void add_streams() {
    Trial trial = result_.best.trial;
    if (options_.keep_streams || !held_back(trial.settings) || !time_for(0.92)) return;
    trial.settings.streams = std::max(enough_streams(trial.settings), trial.settings.streams);
    consider(trial, true, 1.03);
  }

  // On a long link, a little below the highest rates seen: that keeps the network's queues short, so it is accepted
  // even if it is only about as fast.
  void find_pacing() {
    if (options_.keep_pacing || result_.round_trip < kLongWay || !time_for(0.6)) return;
    // Rates that differ little belong to one line, equally fast both ways, with different disturbances.
    const double peak = std::max(peak_out_, peak_in_);
    if (std::min(peak_out_, peak_in_) > kOneLine * peak && consider_pacing(0.98 * peak, 0.98 * peak, 1.03)) return;
    for (const double factor : {0.98, 0.93}) {
      if (time_for(0.6) && consider_pacing(factor * peak_out_, factor * peak_in_, 1.03)) return;
    }
  }

  // Upwards as long as that gains, in smaller and smaller steps.
  void refine_pacing() {
    const Trial& best = result_.best.trial;
    if (options_.keep_pacing || best.settings.pacing_rate == 0) return;
    for (double step = 1.12; step > 1.02 && time_for(0.92);) {
      if (!consider_pacing(step * best.settings.pacing_rate, step * best.pacing_in, 0.985)) step = std::sqrt(step);
    }
  }

  bool consider_pacing(double out, double in, double worth) {
    Trial trial = result_.best.trial;
    trial.settings.pacing_rate = rounded(out);
    trial.pacing_in = rounded(in);
    return consider(trial, false, worth);
  }

  void test_silence() {
    link_.use(result_.best.trial);
    link_.transfer(Way::kBoth, bytes_);
    link_.rest(kSilence);
    result_.best.after_pause = link_.transfer(Way::kBoth, bytes_).slower();
    options_.progress(fmt::format("  {}: {:.0f} ms after {:.3g} s of silence", describe(result_.best.trial),
                                  1e3 * result_.best.after_pause, kSilence));
    for (Tried& tried : result_.tried)
      if (tried.trial == result_.best.trial) tried.after_pause = result_.best.after_pause;
  }

  MeasuredLink& link_;
  const TuneOptions& options_;
  const double begin_;
  std::size_t bytes_ = kFirstSize;
  double peak_out_ = 0, peak_in_ = 0;  // the highest rates of single messages
  Tuned result_;
};

}  // namespace

Tuned tune(MeasuredLink& link, const TuneOptions& options) { return Tuner(link, options).run(); }

std::string describe(const Trial& trial) {
  const PathSettings& settings = trial.settings;
  std::string text = fmt::format("{} stream{}, {}", settings.streams, settings.streams == 1 ? "" : "s",
                                 settings.congestion.empty() ? "usual congestion control" : settings.congestion);
  if (settings.pacing_rate > 0) text += fmt::format(", pacing {:.4g} MB/s", 1e-6 * settings.pacing_rate);
  if (trial.pacing_in > 0 && trial.pacing_in != settings.pacing_rate)
    text += fmt::format(" (in {:.4g})", 1e-6 * trial.pacing_in);
  text += fmt::format(", chunks {}/{} KiB", settings.send_chunk >> 10, settings.receive_chunk >> 10);
  if (settings.window > 0) text += fmt::format(", window {:.3g} MB", 1e-6 * static_cast<double>(settings.window));
  return text;
}

}  // namespace maki::wan
