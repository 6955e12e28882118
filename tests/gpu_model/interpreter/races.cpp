// Who may touch a word: the rules for two accesses of threads, blocks and pieces of work.
#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <unordered_map>

#include "tests/gpu_model/interpreter/operations.hpp"
#include "tests/gpu_model/memory/shadow.hpp"

namespace gpu_model {
namespace {

// What blocks have made known by an atomic access behind a fence, by address.
std::unordered_map<Address, std::unordered_map<std::uint32_t, Moment>> known;

bool ordered_in_block(const Access& a, const Warp& w, unsigned lane) {
  if (a.moment < w.block->barrier) return true;
  if (a.flags & Access::kByWarps) return false;
  if (a.thread / kLanes != w.number) return false;
  if (a.flags & Access::kByLanes) return w.all_met > a.moment;
  const unsigned before = a.thread % kLanes;
  return before == lane || w.last_met(before, lane) > a.moment;
}

bool ordered_between_blocks(const Access& a, const Block& b) {
  if (a.flags & Access::kByBlocks) return false;
  const auto seen = b.seen.find(a.block);
  return seen != b.seen.end() && seen->second > a.moment;
}

std::string thread_words(const Warp& w, const Access& a) {
  return "thread " + std::to_string(a.thread) + (a.flags & (Access::kByLanes | Access::kByWarps) ? " and others" : "") +
         (a.block == w.block->index ? "" : " of block " + std::to_string(a.block));
}

const char* did(const Access& a, const Cell& c) {
  const bool strong = a.flags & Access::kStrong;
  return &a == &c.write ? (strong ? " has written to with an atomic operation" : " has written to")
                        : (strong ? " has read with an atomic operation" : " has read");
}

void check_threads(Warp& w, const Instruction& i, unsigned lane, const Access& a, const Cell& c, Use use,
                   const char* what) {
  if (a.flags & Access::kStrong && i.strong) return;
  const char* verb = use == Use::kRead ? "reads " : use == Use::kWrite ? "writes to " : "changes atomically ";
  if (a.block == w.block->index && !(a.flags & Access::kByBlocks)) {
    if (!ordered_in_block(a, w, lane))
      fault(w, i, lane, "a race in a block",
            std::string(verb) + what + ", which " + thread_words(w, a) + did(a, c) + ", with no barrier between");
  } else if (!ordered_between_blocks(a, *w.block)) {
    fault(w, i, lane, "a race between blocks", std::string(verb) + what + ", which " + thread_words(w, a) + did(a, c));
  }
}

void remember_write(const Warp& w, const Instruction& i, unsigned lane, Cell& c, WorkNumber work) {
  c.write = {work, w.block->index,
             now,  static_cast<std::uint16_t>(w.number * kLanes + lane),
             15,   static_cast<std::uint8_t>(i.strong ? Access::kStrong : 0)};
}

void remember_read(const Warp& w, const Instruction& i, unsigned lane, Cell& c, WorkNumber work) {
  Access& a = c.read;
  const auto thread = static_cast<std::uint16_t>(w.number * kLanes + lane);
  unsigned flags = i.strong ? Access::kStrong : 0;
  if (a.work == work) {
    if (a.block != w.block->index) {
      flags |= Access::kByBlocks;
    } else if (const bool own_warp = a.thread / kLanes == w.number && !(a.flags & Access::kByWarps);
               a.moment >= w.block->barrier && !(own_warp && w.all_met > a.moment)) {
      // Reads that a meeting of the warp or of the block has not put behind.
      if (a.thread != thread) flags |= a.thread / kLanes == w.number ? Access::kByLanes : Access::kByWarps;
      flags |= a.flags & (Access::kByLanes | Access::kByWarps);
      if (!(a.flags & Access::kStrong)) flags &= ~static_cast<unsigned>(Access::kStrong);
    }
    flags |= a.flags & Access::kByBlocks;
  }
  a = {work, w.block->index, now, thread, 15, static_cast<std::uint8_t>(flags)};
}

void exchange_clocks(Warp& w, Address a, Use use) {
  Block& b = *w.block;
  const auto found = known.find(a);
  if (found != known.end())
    for (const auto& [block, moment] : found->second) {
      Moment& m = b.to_see[block];
      m = std::max(m, moment);
    }
  if (b.fenced && use != Use::kRead) {
    auto& mine = known[a];
    mine[b.index] = now + 1;
    for (const auto& [block, moment] : b.seen) {
      Moment& m = mine[block];
      m = std::max(m, moment);
    }
  }
}

// ---- a warp's access, word by word ----------------------------------------------------------------------------------

// What all words of an access have in common.
struct Visit {
  Warp& w;
  const Instruction& i;
  Use use;
  WorkNumber work;  // of shared memory: 1
  WorkNumber made;  // older writes are of others who had the memory before
  Moment began;     // of shared memory: when the block began
  const char* what;
  WorkNumber& ordered;              // work that this one is known to come after
  Cell* (*bytes)(Block&, Address);  // a word's cells of bytes
};

void conflict(const Visit& v, unsigned lane, const Access& before, const Cell& c) {
  if (before.work == v.work) {
    check_threads(v.w, v.i, lane, before, c, v.use, v.what);
  } else if (comes_after(v.work, before.work)) {
    v.ordered = before.work;
  } else {
    fault(v.w, v.i, lane, "a race between streams",
          std::string(v.use == Use::kRead ? "reads" : "writes to") + " memory that " + words(before.work) +
              (&before == &c.write ? " writes to" : " reads") + ", and nothing orders the two");
  }
}

// Whether an access is certainly ordered before this one.
inline bool surely_before(const Visit& v, const Access& a) {
  return a.work == 0 || a.work == v.ordered ||
         (a.work == v.work &&
          ((a.flags & Access::kStrong && v.i.strong) || a.moment < v.began ||
           (a.block == v.w.block->index && a.moment < v.w.block->barrier && !(a.flags & Access::kByBlocks))));
}

// False: nobody has written it.
inline bool visit(const Visit& v, unsigned lane, Cell& c) {
  if (!surely_before(v, c.write)) conflict(v, lane, c.write, c);
  const bool fresh = c.write.work >= v.made && c.write.moment >= v.began;
  const bool defined = fresh && c.write.bytes;  // of a structure's last word some bytes may be padding
  if (v.use == Use::kRead) {
    Access& r = c.read;
    const auto thread = static_cast<std::uint16_t>(v.w.number * kLanes + lane);
    if (r.work == v.work && r.moment == now && r.block == v.w.block->index) {
      if (r.thread != thread) r.flags |= r.thread / kLanes == v.w.number ? Access::kByLanes : Access::kByWarps;
      if (!v.i.strong) r.flags &= static_cast<std::uint8_t>(~Access::kStrong);
    } else {
      if (r.moment < v.began) r = {};
      remember_read(v.w, v.i, lane, c, v.work);
    }
    return defined;
  }
  if (!surely_before(v, c.read)) conflict(v, lane, c.read, c);
  remember_write(v.w, v.i, lane, c, v.work);
  return v.use == Use::kWrite || defined;
}

// Bytes of a word that are used one by one have a cell each.
bool visit_bytes(const Visit& v, unsigned lane, Cell& c, Address word, unsigned mask) {
  Cell* four = v.bytes(*v.w.block, word);
  if (!(c.write.flags & Access::kBytes)) {
    for (unsigned b = 0; b < 4; ++b) {
      four[b] = c;
      four[b].write.bytes = c.write.bytes >> b & 1 ? 15 : 0;
    }
    c.write.flags |= Access::kBytes;
  }
  bool any = false, all = true;
  for (unsigned b = 0; b < 4; ++b) {
    if (!(mask >> b & 1)) continue;
    const bool defined = visit(v, lane, four[b]);
    any = any || defined, all = all && defined;
  }
  return mask == 15 ? any : all;
}

inline unsigned visit_words(const Visit& v, unsigned lane, Cell* c, Address a, unsigned bytes) {
  unsigned undefined = 0;
  if (bytes % 4 == 0) {
    for (unsigned n = 0; n < bytes / 4; ++n) {
      const bool defined =
          c[n].write.flags & Access::kBytes ? visit_bytes(v, lane, c[n], a + 4 * n, 15) : visit(v, lane, c[n]);
      undefined |= static_cast<unsigned>(!defined) << n;
    }
  } else {
    const Address word = a & ~Address{3};
    undefined = !visit_bytes(v, lane, *c, word, mask_in(word, a, bytes));
  }
  return undefined;
}

Cell* device_bytes(Block&, Address word) { return byte_cells_of(word); }

Cell* shared_bytes(Block& b, Address word) {
  if (b.shared_byte_cells.size() < b.shared_bytes + 4) b.shared_byte_cells.resize(b.shared_bytes + 4);
  return b.shared_byte_cells.data() + word;
}

struct Remembered {
  WorkNumber work = 0, made = 0;
  Address begin = 1, end = 0;
};
Remembered& extent_of(const Warp& w, const Instruction& i) {
  static std::vector<Remembered> extents(4096);
  const std::size_t number = place_of(w, i);
  if (number >= extents.size()) extents.resize(2 * number);
  return extents[number];
}

const char* verb_of(Use use) { return use == Use::kRead ? "reads " : "writes "; }
WorkNumber ordered_work = 0, ordered_for = 0;

// MAKI_GPU_MODEL_CHECKS=bounds: races and unwritten memory are not looked for, and a run takes about half the time.
bool only_bounds() {
  static const bool only = [] {
    const char* text = std::getenv("MAKI_GPU_MODEL_CHECKS");
    return text && std::string_view(text) == "bounds";
  }();
  return only;
}

// Lowest and highest address of the lanes, and the bits that are set in any of them.
struct Span {
  Address low, high, bits;
};
Span span_of(Lanes lanes, const Address* a) {
  Span s{a[first_lane(lanes)], a[first_lane(lanes)], 0};
  for (Lanes m = lanes; m; m &= m - 1) {
    const Address x = a[first_lane(m)];
    s.low = std::min(s.low, x), s.high = std::max(s.high, x), s.bits |= x;
  }
  return s;
}

// The lane whose address is to blame.
template <class Wrong>
unsigned find_lane(Lanes lanes, const Address* a, const Wrong& wrong) {
  for (Lanes m = lanes; m; m &= m - 1)
    if (wrong(a[first_lane(m)])) return first_lane(m);
  return first_lane(lanes);
}

void check_alignment(Warp& w, const Instruction& i, Lanes lanes, const Address* a, const Span& span, unsigned bytes) {
  if ((span.bits & (bytes - 1)) == 0) return;
  fatal(w, i, find_lane(lanes, a, [&](Address x) { return x % bytes != 0; }), "misaligned",
        "an access of " + std::to_string(bytes) + " bytes at an address that is no multiple of that");
}

template <class Cells>
void visit_lanes(const Visit& v, Lanes lanes, const Address* a, unsigned bytes, Lanes* undefined, const Cells& cells) {
  for (Lanes m = lanes; m; m &= m - 1) {
    const unsigned l = first_lane(m);
    for (unsigned n = 0, u = visit_words(v, l, cells(a[l]), a[l], bytes); u; ++n, u >>= 1)
      if (u & 1) undefined[n] |= m & -m;
  }
}

}  // namespace

void check_global(Warp& w, const Instruction& i, Lanes lanes, const Address* a, Use use, unsigned bytes,
                  Lanes* undefined) {
  const WorkNumber work = w.block->launch->work;
  const Span span = span_of(lanes, a);
  Remembered& e = extent_of(w, i);
  if (e.work != work || span.low < e.begin || span.high + bytes > e.end) {
    const Extent* found = find_extent(span.low, work);
    if (found && belongs_to_another_gpu(*found, work))
      fatal(w, i, first_lane(lanes), "wrong device",
            verb_of(use) + std::to_string(bytes) + " bytes " + whereabouts(span.low, work) + " of GPU " +
                std::to_string(found->device) + ", the kernel is on GPU " + std::to_string(device_of(work)));
    if (found) e = {work, found->made, found->begin, found->end};
    if (!found || span.high + bytes > found->end) {  // more than one extent, or none
      for (Lanes m = lanes; m; m &= m - 1) {
        const unsigned l = first_lane(m);
        const Extent* own = find_extent(a[l], work);
        if (!own || a[l] + bytes > own->end)
          fatal(w, i, l, "out of bounds", verb_of(use) + std::to_string(bytes) + " bytes " + whereabouts(a[l], work));
        if (lanes & (lanes - 1)) check_global(w, i, m & -m, a, use, bytes, undefined);
      }
      return;
    }
  }
  check_alignment(w, i, lanes, a, span, bytes);
  if (!on_device(span.low) || only_bounds()) return;
  if (i.strong)
    for (Lanes m = lanes; m; m &= m - 1) exchange_clocks(w, a[first_lane(m)], use);
  if (ordered_for != work) ordered_for = work, ordered_work = 0;
  const Visit v{w, i, use, work, e.made, 0, "a word", ordered_work, device_bytes};
  Cell* const cells = &cell_of(span.low & ~Address{3});
  visit_lanes(v, lanes, a, bytes, undefined, [&, base = span.low / 4](Address x) { return cells + (x / 4 - base); });
}

void check_shared(Warp& w, const Instruction& i, Lanes lanes, const Address* a, Use use, unsigned bytes,
                  Lanes* undefined) {
  Block& b = *w.block;
  const Kernel& k = *b.kernel;
  const Span span = span_of(lanes, a);
  const auto inside = [&](Address low, Address high) {
    if (low >= k.shared_end) return high <= b.shared_bytes;
    return std::any_of(k.shared.begin(), k.shared.end(),
                       [&](const SharedVariable& v) { return low >= v.begin && high <= v.end; });
  };
  if (!inside(span.low, span.high + bytes))
    for (Lanes m = lanes; m; m &= m - 1)
      if (const unsigned l = first_lane(m); !inside(a[l], a[l] + bytes))
        fatal(w, i, l, "out of bounds",
              verb_of(use) + std::to_string(bytes) + " bytes of shared memory outside of its variables (byte " +
                  std::to_string(a[l]) + ")");
  check_alignment(w, i, lanes, a, span, bytes);
  if (b.copies_under_way)
    for (Lanes m = lanes; m; m &= m - 1)
      for (unsigned n = 0; n < bytes; ++n)
        if (b.landing[a[first_lane(m)] + n])
          fatal(w, i, first_lane(m), "a copy not waited for", "uses shared memory that a cp.async is on its way to");
  if (only_bounds()) return;
  WorkNumber none = 0;
  const Visit v{w, i, use, 1, 1, b.began, "a word of shared memory", none, shared_bytes};
  visit_lanes(v, lanes, a, bytes, undefined, [&](Address x) { return &b.shared_cells[x / 4]; });
}

void see_others(Block& b) {
  for (const auto& [block, moment] : b.to_see) {
    Moment& m = b.seen[block];
    m = std::max(m, moment);
  }
}

void fence(Warp& w, const Instruction&) {
  w.block->fenced = true;
  see_others(*w.block);
  ++now;
}

Cell* cells_of_bytes(Block& b, Address word, bool shared) {
  return shared ? shared_bytes(b, word) : device_bytes(b, word);
}

void release_clocks() { known.clear(); }

}  // namespace gpu_model
