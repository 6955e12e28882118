// Finds settings under which messages of a size pass a link soonest: streams, window and congestion control follow from
// round trip, rate and what the kernels allow; pacing is searched for, since only trying shows the rate of a line.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "wan/net/tune/measure.hpp"

namespace maki::wan {

struct TuneOptions {
  double seconds = 90;             // about so long
  std::size_t bytes = 64'000'000;  // the largest message tried; slower links are tried with smaller ones
  double pause = 3;                // of the test after silence
  bool thorough = false;           // more repetitions
  Trial base;                      // where the search begins, and what it keeps:
  bool keep_streams = false, keep_window = false, keep_pacing = false, keep_congestion = false;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

struct Tried {
  Trial trial;
  std::size_t bytes = 0;
  Timing warm;             // sent both ways at once, after a first message; medians of the repetitions
  double after_pause = 0;  // the slower way of one after silence; 0: not tried
};

struct Tuned {
  Tried best;
  std::vector<Tried> tried;          // in order
  double round_trip = 0;             // seconds
  double rate_out = 0, rate_in = 0;  // bytes/s, of the best, without the delay of the way
  bool in_time = true;               // false: the time was over before all was tried
};

Tuned tune(MeasuredLink& link, const TuneOptions& options);

// "16 streams, bbr, pacing 95 MB/s, chunks 64/256 KiB", for tables.
std::string describe(const Trial& trial);

}  // namespace maki::wan
