#include "src/timing/phase_timers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/device/device.hpp"
#include "kernels/error.hpp"

namespace maki {

namespace {

// Number of spans that triggers a collection, for callers that never collect.
constexpr std::size_t kMostSpans = 1024;

using Phases = std::list<PhaseTime>;

void write_line(std::string& text, const std::string& name, std::size_t width, double seconds, double whole,
                const std::string& calls) {
  const double percent = whole > 0 ? 100 * seconds / whole : 0;
  text += fmt::format("{:<{}}  {:>10.3f} s  {:>5.1f} %  {:>9}\n", name, width, seconds, percent, calls);
}

// Writes a phase, those within it, and the time in none of these where it is large enough. Returns the next phase.
Phases::const_iterator write_tree(std::string& text, const Phases& phases, Phases::const_iterator phase,
                                  std::size_t width, double whole) {
  write_line(text, indented_name(phase->path), width, phase->total_seconds, whole, fmt::format("{}", phase->calls));
  double rest = phase->total_seconds;
  auto next = std::next(phase);
  while (next != phases.end() && next->path.starts_with(phase->path + '/')) {
    rest -= next->total_seconds;
    next = write_tree(text, phases, next, width, whole);
  }
  if (next != std::next(phase) && rest > 0.005 * whole)
    write_line(text, indented_name(phase->path + "/(rest)"), width, rest, whole, "");
  return next;
}

}  // namespace

std::string indented_name(const std::string& path) {
  const auto depth = static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
  return std::string(2 * depth, ' ') + path.substr(path.rfind('/') + 1);
}

void PhaseTimers::enter(const char* name) {
  const std::string around = current_ ? current_->path + '/' : "", path = around + name;
  auto phase = std::ranges::find(phases_, path, &PhaseTime::path);
  if (phase == phases_.end()) {  // a new one, after the others within the same
    const auto last = std::find_if(phases_.rbegin(), phases_.rend(),
                                   [&](const PhaseTime& one) { return (one.path + '/').starts_with(around); });
    phase = phases_.insert(last.base(), {path});
  }
  current_ = &*phase;
}

PhaseTimers::Scope::Scope(PhaseTimers& timers, const char* name) : timers_(timers), outer_(timers.current_) {
  begin_phase_range(name);
  timers.enter(name);
  begin_ = std::chrono::steady_clock::now();
}

PhaseTimers::Scope::Scope(PhaseTimers& timers, const char* name, const Stream& stream)
    : timers_(timers), outer_(timers.current_), stream_(&stream) {
  begin_phase_range(name);
  timers.enter(name);
  first_mark_ = timers.clock_.mark(stream);
}

PhaseTimers::Scope::~Scope() {
  end_phase_range();
  PhaseTime& phase = *std::exchange(timers_.current_, outer_);
  ++phase.calls;
  if (stream_) try {
      timers_.spans_.push_back({&phase, first_mark_, timers_.clock_.mark(*stream_)});
      if (!timers_.current_ && timers_.spans_.size() > kMostSpans) timers_.collect();
      return;
    } catch (const Error&) {  // of the device: told of where its results are waited for
      return;
    }
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  phase.seconds += elapsed;
  phase.total_seconds += elapsed;
}

void PhaseTimers::collect() {
  for (const Span& span : spans_) {
    const double elapsed = clock_.seconds(span.from, span.to);
    span.phase->seconds += elapsed;
    span.phase->total_seconds += elapsed;
  }
  spans_.clear();
  if (!current_) clock_.clear();  // marks of open scopes stay
}

void PhaseTimers::reset() {
  collect();
  for (PhaseTime& phase : phases_) phase.seconds = 0;
}

std::string PhaseTimers::table() const {
  double whole = 0;
  std::size_t width = 24;
  for (const PhaseTime& phase : phases_) {
    if (phase.path.find('/') == phase.path.npos) whole += phase.total_seconds;
    width = std::max(width, indented_name(phase.path).size() + 4);
  }
  std::string text = fmt::format("{:<{}}  {:>12}  {:>7}  {:>9}\n", "phase", width, "time", "share", "calls");
  for (auto phase = phases_.begin(); phase != phases_.end();) phase = write_tree(text, phases_, phase, width, whole);
  write_line(text, "total", width, whole, whole, "");
  return text;
}

}  // namespace maki
