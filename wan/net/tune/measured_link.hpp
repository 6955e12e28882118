// A link between two sites as its measurement sees it: settings are tried, and messages are timed at their receiver.
#pragma once

#include <cstddef>
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

}  // namespace maki::wan
