#include "src/simulation/film.hpp"

#include <algorithm>
#include <cmath>

namespace maki {
namespace {

// Scale factors at evenly spaced times: physical time by ln a on a fine grid, with linear interpolation.
std::vector<double> even_in_time(std::size_t count, const Timeline& timeline, double start, double end) {
  constexpr std::size_t kCells = 4096;
  const double first = std::log(start), step = std::log(end / start) / kCells;
  std::vector<double> passed = {0};
  for (std::size_t i = 0; i < kCells; ++i) {
    const double t = first + static_cast<double>(i) * step;
    passed.push_back(passed.back() + timeline.physical_time(t, t + step));
  }
  std::vector<double> times;
  for (std::size_t i = 0; i < count; ++i) {
    const double wanted = passed.back() * static_cast<double>(i) / static_cast<double>(count - 1);
    const auto after = std::upper_bound(passed.begin() + 1, passed.end() - 1, wanted);
    const auto cell = static_cast<double>(after - passed.begin() - 1);
    times.push_back(std::exp(first + step * (cell + (wanted - *(after - 1)) / (*after - *(after - 1)))));
  }
  return times;
}

}  // namespace

std::vector<double> film_times(std::size_t count, Cadence cadence, const Timeline& timeline, double start, double end) {
  if (count == 0) return {};
  std::vector<double> times;
  const bool comoving = timeline.is_comoving();
  if (comoving && cadence == Cadence::kTime && count > 1) {
    times = even_in_time(count, timeline, start, end);
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      const double part = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 1;
      times.push_back(comoving && cadence == Cadence::kLogScaleFactor ? start * std::pow(end / start, part)
                                                                      : start + part * (end - start));
    }
  }
  if (count > 1) times.front() = start;
  times.back() = end;
  return times;
}

Particles drifted_back(const Stream& stream, const Particles& now, double factor) {
  Particles then;
  then.source.copy_from(stream, now.source);
  then.remainder.copy_from(stream, now.remainder);
  then.momentum.copy_from(stream, now.momentum);
  drift(stream, then, -factor);
  return then;
}

}  // namespace maki
