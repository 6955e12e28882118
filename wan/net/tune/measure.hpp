// A link between two sites: limits of the kernels at its ends, its measurement, and the search for its settings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "wan/net/error.hpp"
#include "wan/net/settings.hpp"

namespace maki::wan {

// Limits of one end's kernel on its sockets. Bytes; 0: unknown.
struct KernelLimits {
  std::uint64_t rmem_max = 0, wmem_max = 0;          // bounds of SO_RCVBUF and SO_SNDBUF: settings.window
  std::uint64_t tcp_rmem_max = 0, tcp_wmem_max = 0;  // bounds of the kernel's own tuning
  bool slow_start_after_idle = false;
  std::string congestion;                // the default
  std::vector<std::string> congestions;  // available to this program

  static KernelLimits of_this_machine();
  bool allows_bbr() const;
  bool operator==(const KernelLimits&) const = default;
};

struct Limit {
  std::string what;    // one sentence
  std::string remedy;  // a command for an administrator; may be empty
};

// The limits that would keep a path with these settings from `rate` (bytes/s) over `round_trip` (seconds), in a kernel
// that sends and receives.
std::vector<Limit> limits_of(const KernelLimits& kernel, const PathSettings& settings, double rate, double round_trip);

// Whether the bounds of the kernel's own tuning are among them.
bool memory_holds_back(const KernelLimits& kernel, const PathSettings& settings, double rate, double round_trip);

// Settings of both ends: they differ only in pacing, if the two directions have different rates.
struct Trial {
  PathSettings settings;  // pacing_rate: of what we send
  double pacing_in = 0;   // of the other end
  bool operator==(const Trial&) const = default;
};

enum class Way { kOut, kIn, kBoth };

// Seconds from the begin of the sending to the last byte at the receiver; 0 for an unused direction.
struct Timing {
  double out = 0, in = 0;
  double slower() const { return out > in ? out : in; }
};

// Processor seconds of both processes since they began.
struct CpuUse {
  double here = 0, there = 0;
};

// A link between two sites, for measuring: applies settings, and times messages at their receiver.
class MeasuredLink {
 public:
  virtual ~MeasuredLink() = default;
  // Reconnects if the change needs it. Throws PathError, Error.
  virtual void use(const Trial& trial) = 0;
  // Round trips of 8 bytes, in seconds, in the order of measuring.
  virtual std::vector<double> round_trips(int count) = 0;
  virtual Timing transfer(Way way, std::size_t bytes) = 0;
  virtual void rest(double seconds) = 0;
  virtual double now() const = 0;  // seconds, from any origin
  virtual CpuUse cpu() = 0;
  virtual const KernelLimits& kernel_here() const = 0;
  virtual const KernelLimits& kernel_there() const = 0;
};

// Seconds of silence before a message, as of programs that compute between their messages.
inline constexpr double kSilence = 3;

struct BenchOptions {
  double seconds = 40;  // approximate; larger messages are left out if they would exceed it
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

struct Latency {
  int count = 0;
  double least = 0, median = 0, percentile_99 = 0;  // seconds, round trip of 8 bytes
};

// Seconds, medians of `count`. both: the slower direction of messages sent both ways at once.
struct SizeRow {
  std::size_t bytes = 0;
  int count = 0;
  double out = 0, in = 0, both = 0;
};

struct BenchResult {
  Latency latency;
  std::vector<SizeRow> rows;
  SizeRow after_pause;
  double cpu_here = 0, cpu_there = 0;  // processor seconds per 10^9 bytes that one end sends and the other receives
  std::vector<std::size_t> left_out;
};

double median(std::vector<double> values);  // 0 of none

// Measures a link with given settings: latency, messages of several sizes, after silence, processor time.
BenchResult measure(MeasuredLink& link, const Trial& trial, const BenchOptions& options);

struct TuneOptions {
  double seconds = 90;    // approximate
  bool thorough = false;  // more repetitions
  Trial base;             // begin of the search; of its settings these are kept:
  bool keep_streams = false, keep_window = false, keep_pacing = false, keep_congestion = false;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

struct Tried {
  Trial trial;
  std::size_t bytes = 0;
  Timing warm;             // sent both ways at once, after a first message; medians of the repetitions
  double after_pause = 0;  // the slower direction of a message after kSilence; 0: not tried
};

struct Tuned {
  Tried best;
  std::vector<Tried> tried;          // in order
  double round_trip = 0;             // seconds
  double rate_out = 0, rate_in = 0;  // bytes/s, of the best, without the one-way delay
  bool in_time = true;               // false: time ran out before all was tried
};

// Finds the settings with which messages of a size pass a link fastest. Streams, window and congestion control follow
// from round trip, rate and the kernels' limits; pacing needs a search, since only trials show the rate of a line.
Tuned tune(MeasuredLink& link, const TuneOptions& options);

// "16 streams, bbr, pacing 95 MB/s, chunks 64/256 KiB", for tables.
std::string describe(const Trial& trial);

}  // namespace maki::wan
