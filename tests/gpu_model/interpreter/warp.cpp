#include "tests/gpu_model/interpreter/warp.hpp"

#include <cstdio>

namespace gpu_model {

Moment now = 0;

void expand(Lanes mask, std::int32_t* flags) {
  for (unsigned l = 0; l < kLanes; ++l) flags[l] = -static_cast<std::int32_t>(mask >> l & 1);
}

Lanes mask_of(const std::int32_t* flags) {
  Lanes mask = 0;
  for (unsigned l = 0; l < kLanes; ++l) mask |= static_cast<Lanes>(flags[l] < 0) << l;
  return mask;
}

void set_active(Warp& w, Lanes lanes) {
  if (w.active == lanes) return;
  w.active = lanes;
  expand(lanes, w.lane);
}

std::string where(const Warp& w, const Instruction& i, unsigned lane) {
  const Block& b = *w.block;
  const Kernel& k = *b.kernel;
  const unsigned t = w.number * kLanes + lane, bx = b.launch->block[0], by = b.launch->block[1];
  char text[160];
  std::snprintf(text, sizeof text, ", block (%u,%u,%u), thread (%u,%u,%u)", b.place[0], b.place[1], b.place[2], t % bx,
                t / bx % by, t / bx / by);
  std::string all = "kernel " + k.name + text;
  // What was inlined, and where.
  const char* before = ", ";
  for (int n = i.source; n >= 0 && k.text->lines[static_cast<std::size_t>(n)].line; before = " < ") {
    const ptx::Line& line = k.text->lines[static_cast<std::size_t>(n)];
    const auto name = k.files->find(line.file);
    all += before + (name == k.files->end() ? "?" : name->second) + ":" + std::to_string(line.line);
    n = k.text->callers[static_cast<std::size_t>(n)];
  }
  return all;
}

void fault(const Warp& w, const Instruction& i, unsigned lane, const std::string& kind, const std::string& text) {
  report({kind, where(w, i, lane), text});
}

void fatal(const Warp& w, const Instruction& i, unsigned lane, const std::string& kind, const std::string& text) {
  fault(w, i, lane, kind, text);
  throw Stopped{kind == "misaligned" ? 716 : kind == "out of bounds" ? kIllegalAddress : 719};
}

}  // namespace gpu_model
