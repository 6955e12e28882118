// The end of a run over many ranks as text: see rank_records.hpp.
#include <fmt/format.h>

#include <algorithm>

#include "src/simulation/rank_records.hpp"

namespace maki {

namespace {

using Ranks = std::vector<RankRecord>;

std::string phase_table(const Ranks& ranks) {
  const std::vector<std::string> paths = phase_paths(ranks);
  std::size_t width = 24;
  double whole = 0;  // mean over ranks
  const auto name_of = [](const std::string& path) {
    const auto depth = static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
    return std::string(2 * depth, ' ') + path.substr(path.rfind('/') + 1);
  };
  for (const std::string& path : paths) {
    width = std::max(width, name_of(path).size() + 2);
    if (path.find('/') != path.npos) continue;
    whole += spread_of(ranks, [&path](const RankRecord& r) { return phase_total(r, path); }).mean;
  }
  std::string text = fmt::format("{:<{}}  {:>10}  {:>10}  {:>10}  {:>7}  {:>9}\n", "phase, seconds of a rank", width,
                                 "min", "mean", "max", "share", "max/mean");
  for (const std::string& path : paths) {
    const Spread s = spread_of(ranks, [&path](const RankRecord& r) { return phase_total(r, path); });
    text += fmt::format("{:<{}}  {:>10.3f}  {:>10.3f}  {:>10.3f}  {:>5.1f} %  {:>9.2f}\n", name_of(path), width, s.min,
                        s.mean, s.max, whole > 0 ? 100 * s.mean / whole : 0, s.imbalance());
  }
  return text;
}

std::string work_table(const Ranks& ranks) {
  const auto line = [&ranks](const char* name, const std::function<double(const RankRecord&)>& number) {
    const Spread s = spread_of(ranks, number);
    return fmt::format("{:<26}  {:>12.5g}  {:>12.5g}  {:>12.5g}  {:>9.3f}  {:>5}\n", name, s.min, s.mean, s.max,
                       s.imbalance(), s.largest);
  };
  return fmt::format("{:<26}  {:>12}  {:>12}  {:>12}  {:>9}  {:>5}\n", "over ranks", "min", "mean", "max", "max/mean",
                     "rank") +
         line("particles", [](const RankRecord& r) { return static_cast<double>(r.particles); }) +
         line("interactions", [](const RankRecord& r) { return static_cast<double>(r.gravity.interactions); }) +
         line("tree/evaluate, s", [](const RankRecord& r) { return phase_total(r, "tree/evaluate"); }) +
         line("device memory, MB", [](const RankRecord& r) { return 1e-6 * static_cast<double>(r.memory_high_water); });
}

std::string exchange_lines(const Ranks& ranks, std::uint64_t steps) {
  const GravityCounts all = over_ranks(ranks);
  if (all.let_messages == 0) return "";
  const auto of_each = 1 / static_cast<double>(std::max<std::uint64_t>(steps, 1) * ranks.size());
  const double hidden =
      all.let_exchange_seconds > 0 ? 100 * (1 - all.let_waited_seconds / all.let_exchange_seconds) : 100;
  return fmt::format(
      "local essential trees, of a rank and a step: {:.0f} cells and {:.0f} particles received, {:.3f} MB in {:.1f} "
      "messages sent; {:.1f} % of the time of their exchange was hidden behind other work\n",
      static_cast<double>(all.let_cells) * of_each, static_cast<double>(all.let_particles) * of_each,
      1e-6 * static_cast<double>(all.let_bytes) * of_each, static_cast<double>(all.let_messages) * of_each, hidden);
}

std::string memory_of_ranks(const Ranks& ranks) {
  const int largest =
      spread_of(ranks, [](const RankRecord& r) { return static_cast<double>(r.memory_high_water); }).largest;
  std::string text = fmt::format("{:>6}  {:>12}  {:>14}  {:>10}\n", "rank", "particles", "MB at the peak", "MB held");
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    text +=
        fmt::format("{:>6}  {:>12}  {:>14.2f}  {:>10.2f}{}\n", r, ranks[r].particles,
                    1e-6 * static_cast<double>(ranks[r].memory_high_water),
                    1e-6 * static_cast<double>(ranks[r].memory_held), static_cast<int>(r) == largest ? "  (most)" : "");
  }
  return text;
}

}  // namespace

std::string rank_report(const Ranks& ranks, std::uint64_t steps) {
  return phase_table(ranks) + '\n' + work_table(ranks) + exchange_lines(ranks, steps) + '\n' + memory_of_ranks(ranks);
}

}  // namespace maki
