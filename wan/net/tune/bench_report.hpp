// The measurement of a link with settings that are there: latency, messages of several sizes, after silence, processor
// time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "wan/net/tune/measured_link.hpp"

namespace maki::wan {

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

BenchResult measure(MeasuredLink& link, const Trial& trial, const BenchOptions& options);

}  // namespace maki::wan
