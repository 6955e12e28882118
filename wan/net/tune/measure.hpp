// Measuring a link between two sites.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "wan/net/settings.hpp"
#include "wan/net/tune/kernel_limits.hpp"

namespace maki::wan {

// Settings of both ends: they differ in pacing only, where the ways out and in have different rates.
struct Trial {
  PathSettings settings;  // pacing_rate: of what we send
  double pacing_in = 0;   // of what the other end sends
  bool operator==(const Trial&) const = default;
};

enum class Way { kOut, kIn, kBoth };

// Seconds from the begin of the sending to the last byte at the receiver; 0 for a way that was not used.
struct Timing {
  double out = 0, in = 0;
  double slower() const { return out > in ? out : in; }
};

// Processor seconds of both processes since they began.
struct CpuUse {
  double here = 0, there = 0;
};

// A link between two sites as its measurement sees it: settings are tried, and messages are timed at their receiver.
class MeasuredLink {
 public:
  virtual ~MeasuredLink() = default;
  // Connects anew where the change needs it. Throws PathError, Error.
  virtual void use(const Trial& trial) = 0;
  // Of 8 bytes there and back, in seconds, in the order of measuring.
  virtual std::vector<double> round_trips(int count) = 0;
  virtual Timing transfer(Way way, std::size_t bytes) = 0;
  virtual void rest(double seconds) = 0;
  virtual double now() const = 0;  // seconds, of any beginning
  virtual CpuUse cpu() = 0;
  virtual const KernelLimits& kernel_here() const = 0;
  virtual const KernelLimits& kernel_there() const = 0;
};

struct BenchOptions {
  double seconds = 40;  // about; larger messages are left out where they would take longer
  double pause = 3;
  std::vector<std::size_t> sizes = {1'000'000, 8'000'000, 64'000'000, 512'000'000};
  std::size_t bytes_after_pause = 64'000'000;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

struct Latency {
  int count = 0;
  double least = 0, median = 0, percentile_99 = 0;  // seconds, of 8 bytes there and back
};

// Seconds, medians of `count`. both: the slower way of messages sent both ways at once.
struct SizeRow {
  std::size_t bytes = 0;
  int count = 0;
  double out = 0, in = 0, both = 0;
};

struct BenchResult {
  Latency latency;
  std::vector<SizeRow> rows;
  SizeRow after_pause;                 // count 0: not measured
  double cpu_here = 0, cpu_there = 0;  // processor seconds per 10^9 bytes that one end sends and the other receives
  std::vector<std::size_t> left_out;
};

// The measurement of a link with settings that are there: latency, messages of several sizes, after silence, processor
// time.
BenchResult measure(MeasuredLink& link, const Trial& trial, const BenchOptions& options);

}  // namespace maki::wan
