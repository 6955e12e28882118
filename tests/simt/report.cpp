// The words of a fault.
#include "tests/simt/runtime.hpp"

namespace maki::simt {
namespace {

Place place(std::uint32_t pc, Site site, int thread, unsigned block) {
  Place at;
  if (site.file)
    at = {site.file, site.line};
  else if (pc && !sources_of(pc).empty())
    at = sources_of(pc).front();
  at.thread = thread;
  at.block = block;
  return at;
}

std::string lines(const Place& at) {
  return at.file.empty() ? std::string() : at.file + ":" + std::to_string(at.line) + ": ";
}

// The way from the kernel to the place, where that is more than the place itself.
std::string calls(const Report& report, const Place& at) {
  std::vector<Place> way;
  if (report.pc) way = sources_of(report.pc);
  for (const std::uint32_t pc : report.callers)
    for (const Place& place : sources_of(pc))
      if (way.empty() || way.back().line != place.line || way.back().file != place.file) way.push_back(place);
  // What the model itself called comes first.
  std::size_t i = 0;
  while (i < way.size() && !(way[i].file == at.file && way[i].line == at.line)) ++i;
  std::string text;
  for (++i; i < way.size() && way[i].line > 0; ++i)
    text += (text.empty() ? "\n  called from " : ", ") + way[i].file + ":" + std::to_string(way[i].line);
  return text;
}

}  // namespace

const char* to_string(FaultKind kind) {
  switch (kind) {
    case FaultKind::race: return "race";
    case FaultKind::unwritten: return "read of unwritten shared memory";
    case FaultKind::out_of_bounds: return "access outside a buffer";
    case FaultKind::misaligned: return "misaligned access";
    case FaultKind::unlanded_copy: return "access to an asynchronous copy under way";
    case FaultKind::divergent_barrier: return "divergent barrier";
    case FaultKind::missing_lane: return "missing lane";
    case FaultKind::bad_shuffle: return "bad shuffle";
    case FaultKind::endless: return "endless block";
    case FaultKind::exception: return "exception";
    case FaultKind::bad_launch: return "bad launch";
  }
  return "?";
}

std::string name_thread(unsigned index) {
  return "thread " + std::to_string(index) + " (warp " + std::to_string(index / kLanes) + ", lane " +
         std::to_string(index % kLanes) + ")";
}

void throw_fault(const Report& report) {
  const Place at = place(report.pc, report.site, report.thread, running.block);
  std::string text = lines(at) + to_string(report.kind) + " in kernel '" + running.name + "', block " +
                     std::to_string(at.block);
  if (at.thread >= 0) text += ", " + name_thread(static_cast<unsigned>(at.thread));
  text += ": " + report.what;
  text += calls(report, at);
  Place other;
  if (report.has_other) {
    other = place(report.other_pc, report.other_site, report.other_thread, report.other_block);
    text += "\n  " + lines(other) + "block " + std::to_string(other.block);
    if (other.thread >= 0) text += ", " + name_thread(static_cast<unsigned>(other.thread));
    text += " " + report.other_what;
  }
  text += "\n  seed " + std::to_string(options().seed);
  throw Fault(report.kind, running.name, at, other, report.buffer, text);
}

}  // namespace maki::simt
