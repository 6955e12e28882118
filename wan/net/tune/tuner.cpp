#include "wan/net/tune/tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace maki::wan {
namespace {

// A change has to gain so much to be worth it: measurements scatter by about as much.
constexpr double kWorthIt = 0.97;
constexpr double kLongWay =
    0.002;  // seconds of a round trip from which on queues of the network matter, and chunks do not
constexpr double kOneLine = 0.7;  // of the higher rate
constexpr std::size_t kFirstSize = 256 << 10;

// Three digits, as a user would write it.
double rounded(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return std::round(value / unit) * unit;
}

bool has(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

class Tuner {
 public:
  Tuner(MeasuredLink& link, const TuneOptions& options) : link_(link), options_(options), begin_(link.now()) {}

  Tuned run() {
    size_messages();
    consider(options_.base);
    sweep_streams();
    find_pacing();
    sweep_congestion();
    refine_streams();
    refine_pacing();
    sweep_chunks();
    try_window();
    compare_after_pause();
    link_.use(result_.best.trial);
    std::tie(result_.rate_out, result_.rate_in) = rates(result_.best);
    return result_;
  }

 private:
  bool time_for(double share) {
    const bool left = link_.now() - begin_ < share * options_.seconds;
    if (!left) result_.in_time = false;
    return left;
  }

  // A message that takes a few round trips, or half a second, once streams are open: long enough to show the rate.
  void size_messages() {
    link_.use(options_.base);
    const std::vector<double> times = link_.round_trips(4);
    result_.round_trip = *std::min_element(times.begin(), times.end());
    const double enough = std::max(0.5, 4 * result_.round_trip);
    bytes_ = std::min(kFirstSize, options_.bytes);
    double rate = 0;
    for (int warm = 0; warm < 2 && time_for(0.2);) {
      const double seconds = link_.transfer(Way::kBoth, bytes_).slower();
      rate = std::max(rate, rate_of(bytes_, seconds));
      const bool grows = seconds < 0.7 * enough && bytes_ < options_.bytes;
      if (grows)
        bytes_ = std::min(bytes_ * 4, options_.bytes);
      else
        ++warm;
    }
    bytes_ = std::min(options_.bytes, static_cast<std::size_t>(std::max(rate * enough, double{kFirstSize})));
    options_.progress(fmt::format("round trip {:.2f} ms; trying messages of {:.3g} MB both ways at once",
                                  1e3 * result_.round_trip, 1e-6 * static_cast<double>(bytes_)));
  }

  // Measures a trial, unless it has been; one that takes less than `worth` of the best's time becomes the best. True
  // when it did.
  bool consider(const Trial& trial, bool reconnects = true, double worth = kWorthIt) {
    for (const Tried& before : result_.tried) {
      if (before.trial == trial) return false;
    }
    Tried tried{trial, bytes_, {}, 0};
    try {
      tried.warm = measure(trial, reconnects);
    } catch (const PathError&) {
      throw;
    } catch (const Error& error) {  // one of the kernels does not allow it
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

  // Medians: a stall now and then is the network's.
  Timing measure(const Trial& trial, bool reconnects) {
    link_.use(trial);
    if (reconnects) link_.transfer(Way::kBoth, bytes_);  // the streams' windows open
    std::vector<double> out, in;
    for (int i = 0; i < (options_.thorough ? 5 : 3); ++i) {
      const Timing timing = link_.transfer(Way::kBoth, bytes_);
      out.push_back(timing.out);
      in.push_back(timing.in);
      peak_out_ = std::max(peak_out_, rate_of(bytes_, timing.out));
      peak_in_ = std::max(peak_in_, rate_of(bytes_, timing.in));
    }
    std::sort(out.begin(), out.end());
    std::sort(in.begin(), in.end());
    return {out[out.size() / 2], in[in.size() / 2]};
  }

  // Without the delay of the way.
  double rate_of(std::size_t bytes, double seconds) const {
    return static_cast<double>(bytes) / std::max(seconds - result_.round_trip / 2, 1e-6);
  }
  std::pair<double, double> rates(const Tried& tried) const {
    return {rate_of(tried.bytes, tried.warm.out), rate_of(tried.bytes, tried.warm.in)};
  }

  // More, else fewer and fewer while that costs little.
  void sweep_streams() {
    if (options_.keep_streams) return;
    if (try_streams(64, 0.4) && !options_.thorough) return;
    for (const int streams : {4, 1}) {
      try_streams(streams, 0.4);
      if (!options_.thorough && result_.tried.back().warm.slower() > 1.2 * result_.best.warm.slower()) break;
    }
  }

  bool try_streams(int streams, double share, double worth = kWorthIt) {
    if (streams < 1 || streams > kMaxStreams || !time_for(share)) return false;
    Trial trial = result_.best.trial;
    trial.settings.streams = streams;
    return consider(trial, true, worth);
  }

  void sweep_congestion() {
    if (options_.keep_congestion) return;
    const std::string usual = link_.kernel_here().congestion;
    for (const char* name : {"bbr", "cubic"}) {
      const bool known = has(link_.kernel_here().congestions, name) && has(link_.kernel_there().congestions, name);
      const bool is_usual = usual == name && link_.kernel_there().congestion == name;
      if (!known || is_usual || !time_for(0.7)) continue;
      Trial trial = result_.best.trial;
      trial.settings.congestion = name;
      consider(trial);
      if (!options_.thorough || options_.keep_streams) continue;
      for (const int streams : {1, 4, 16, 64}) {
        trial.settings.streams = streams;
        if (time_for(0.7)) consider(trial);
      }
    }
  }

  // Fewer are better where they are as fast; but a path that the kernels' limits hold back has no room for losses, which
  // longer messages meet.
  void refine_streams() {
    if (options_.keep_streams) return;
    const int streams = result_.best.trial.settings.streams;
    if (held_back(streams)) {
      for (int more = 2 * streams; more <= kMaxStreams && try_streams(more, 0.8, 1.03) && held_back(more); more *= 2) {
      }
    } else if (streams == 1 || held_back(streams / 2) || !try_streams(streams / 2, 0.8, 1.01)) {
      try_streams(streams * 2, 0.8);
    }
  }

  bool held_back(int streams) const {
    PathSettings settings = result_.best.trial.settings;
    settings.streams = streams;
    const auto short_of_memory = [&](const KernelLimits& kernel) {
      return memory_holds_back(kernel, settings, std::max(peak_out_, peak_in_), result_.round_trip);
    };
    return short_of_memory(link_.kernel_here()) || short_of_memory(link_.kernel_there());
  }

  // On a long way, a little below the highest rates seen: that keeps the network's queues short, so that it is taken
  // also where it is only about as fast.
  void find_pacing() {
    if (options_.keep_pacing || result_.round_trip < kLongWay || !time_for(0.6)) return;
    // Rates that differ little are those of one line that carries the same both ways, more or less disturbed.
    const double peak = std::max(peak_out_, peak_in_);
    if (std::min(peak_out_, peak_in_) > kOneLine * peak && consider_pacing(0.98 * peak, 0.98 * peak, 1.03)) return;
    for (const double factor : {0.98, 0.93}) {
      if (time_for(0.6) && consider_pacing(factor * peak_out_, factor * peak_in_, 1.03)) return;
    }
  }

  // Upwards while that gains, in smaller and smaller steps.
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

  void sweep_chunks() {
    if (options_.keep_chunks || (result_.round_trip > kLongWay && !options_.thorough)) return;
    for (const std::size_t chunk : {32 << 10, 128 << 10, 256 << 10, 1 << 20}) {
      Trial trial = result_.best.trial;
      trial.settings.send_chunk = chunk;
      if (time_for(0.92)) consider(trial, false);
    }
    for (const std::size_t chunk : {64 << 10, 1 << 20}) {
      Trial trial = result_.best.trial;
      trial.settings.receive_chunk = chunk;
      if (time_for(0.92)) consider(trial, false);
    }
  }

  // Twice what is on the way, in equal parts, where the kernels allow it.
  void try_window() {
    if (options_.keep_window || !time_for(0.95)) return;
    const auto [out, in] = rates(result_.best);
    Trial trial = result_.best.trial;
    if (!options_.thorough && !held_back(trial.settings.streams)) return;
    const double share = 2 * std::max(out, in) * result_.round_trip / trial.settings.streams;
    std::size_t window = 128 << 10;
    while (static_cast<double>(window) < share) window *= 2;
    const auto allowed = [&](const KernelLimits& kernel) {
      return kernel.rmem_max >= window && kernel.wmem_max >= window;
    };
    if (!allowed(link_.kernel_here()) || !allowed(link_.kernel_there())) return;
    trial.settings.window = window;
    consider(trial);
  }

  double after_pause(Tried& tried) {
    link_.use(tried.trial);
    link_.transfer(Way::kBoth, bytes_);
    link_.rest(options_.pause);
    tried.after_pause = link_.transfer(Way::kBoth, bytes_).slower();
    options_.progress(fmt::format("  {}: {:.0f} ms after {:.3g} s of silence", describe(tried.trial),
                                  1e3 * tried.after_pause, options_.pause));
    return tried.after_pause;
  }

  // Programs work between their messages: among those that are about as fast, the one that is soonest after a silence.
  void compare_after_pause() {
    std::vector<Tried*> close;
    for (Tried& tried : result_.tried) {
      if (tried.warm.slower() < 1.15 * result_.best.warm.slower()) close.push_back(&tried);
    }
    std::stable_sort(close.begin(), close.end(),
                     [](const Tried* a, const Tried* b) { return a->warm.slower() < b->warm.slower(); });
    std::stable_partition(close.begin(), close.end(),
                          [&](const Tried* tried) { return tried->trial == result_.best.trial; });
    std::optional<double> shortest;
    std::vector<const Tried*> tested;
    for (Tried* tried : close) {
      if (tested.size() >= (options_.thorough ? 6u : 3u) || (shortest && !time_for(1))) break;
      if (alike_after_pause(*tried, tested)) continue;
      tested.push_back(tried);
      const double sum = tried->warm.slower() + after_pause(*tried);
      if (shortest && sum >= kWorthIt * *shortest) continue;
      shortest = sum;
      result_.best = *tried;
    }
  }

  // Chunks do not change what a silence does.
  static bool alike_after_pause(const Tried& tried, const std::vector<const Tried*>& tested) {
    return std::any_of(tested.begin(), tested.end(), [&](const Tried* other) {
      Trial trial = other->trial;
      trial.settings.send_chunk = tried.trial.settings.send_chunk;
      trial.settings.receive_chunk = tried.trial.settings.receive_chunk;
      return trial == tried.trial;
    });
  }

  MeasuredLink& link_;
  const TuneOptions& options_;
  const double begin_;
  std::size_t bytes_ = 0;
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
