// The words of a fault.
#include "tests/simt/runtime.hpp"

namespace maki::simt {
namespace {

Place place(std::uint32_t pc, Site site, int thread, unsigned block) {
  Place at = site.file ? Place{site.file, site.line} : pc ? source_of(pc) : Place{};
  at.thread = thread;
  at.block = block;
  return at;
}

std::string lines(const Place& at) {
  return at.file.empty() ? std::string() : at.file + ":" + std::to_string(at.line) + ": ";
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
