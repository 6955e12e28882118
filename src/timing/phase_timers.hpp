// A tree of timers: where the time of a step goes.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "kernels/device/stream.hpp"

namespace maki {

// One phase, by its path: "tree/walk".
struct PhaseTime {
  std::string path;
  double seconds = 0;        // since the last reset
  double total_seconds = 0;  // since the start
  std::uint64_t calls = 0;
};
// The last name of a path, two spaces further right for each phase around it.
std::string indented_name(const std::string& path);

// Scopes nest: a Scope opened while another is open becomes its child. A Scope with a stream times the work queued
// there while it is open, by the device's clock; collect() adds its seconds. Phases of two streams may overlap: their
// sum then exceeds the elapsed time. Not thread-safe. Profilers show each Scope as a range of the host
// (kernels/device/device.hpp).
class PhaseTimers {
 public:
  class Scope {
   public:
    Scope(PhaseTimers& timers, const char* name);  // time of the host
    Scope(PhaseTimers& timers, const char* name, const Stream& stream);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PhaseTimers& timers_;
    PhaseTime* outer_;  // the phase around it; null: none
    const Stream* stream_ = nullptr;
    std::size_t first_mark_ = 0;
    std::chrono::steady_clock::time_point begin_;
  };

  // Adds the times of scopes with a stream, which must all be closed. Waits for their work, so call it where the host
  // has just waited anyway.
  void collect();
  void reset();  // seconds back to 0, totals kept
  // Each before those within it.
  std::vector<PhaseTime> phases() const { return {phases_.begin(), phases_.end()}; }
  std::size_t marks_made() const { return clock_.made(); }  // of the clock, at one time
  std::string table() const;                                // aligned text, one line a phase, with percentages

 private:
  struct Span {
    PhaseTime* phase;
    std::size_t from, to;  // marks
  };
  void enter(const char* name);

  std::list<PhaseTime> phases_;   // in the order of phases()
  PhaseTime* current_ = nullptr;  // of the innermost open scope; null: none is open
  StreamClock clock_;
  std::vector<Span> spans_;  // not yet collected
};

}  // namespace maki
