// The rare cases of the shadow memory: lanes with different clocks at one word, bytes of a word.
#include "tests/simt/shadow.hpp"

#include <vector>

namespace maki::simt {
namespace {

struct Spill {
  std::uint32_t clock[kLanes];
};
struct Bytes {
  Cell cell[4];
};
// Rare, and only for the length of a launch.
std::vector<Spill> spills;
std::vector<Bytes> splits;
std::uint32_t tables_of = 0;  // the launch they belong to

void start_tables() {
  if (tables_of == hot.launch_start) return;
  tables_of = hot.launch_start;
  spills.clear();
  splits.clear();
}

}  // namespace

bool lanes_ordered(const Slot& s, std::uint32_t others) {
  for (; others; others &= others - 1) {
    const int lane = std::countr_zero(others);
    const std::uint32_t clock = s.flags & kSpilled ? spills[s.second].clock[lane] : s.clock;
    if (hot.known_lanes[lane] < clock) return false;
  }
  return true;
}

MAKI_COLD void spill(Slot& s) {
  const Pause pause;
  start_tables();
  if (!(s.flags & kSpilled)) {
    Spill all{};
    for (std::uint32_t lanes = s.lanes; lanes; lanes &= lanes - 1) all.clock[std::countr_zero(lanes)] = s.clock;
    s.second = static_cast<std::uint32_t>(spills.size());
    s.flags |= kSpilled;
    spills.push_back(all);
  }
  spills[s.second].clock[std::countr_zero(hot.bit)] = hot.clock;
  s.lanes |= hot.bit;
}

MAKI_COLD Cell* bytes_of(Cell& cell) {
  if (!is_split(cell)) {
    const Pause pause;
    start_tables();
    if (cell.write.phase < hot.launch_start) cell.write = {};
    splits.push_back({{cell, cell, cell, cell}});
    cell.write = {hot.phase, 0, 0, 0, static_cast<std::uint32_t>(splits.size() - 1), 0, 0, kSplit};
  }
  return splits[cell.write.second].cell;
}

}  // namespace maki::simt
