// Rows for registers: PTX has as many registers as values; what is not alive at the same time shares a row, so that a
// warp's rows stay in the processor's cache.
#include <algorithm>
#include <limits>

#include "tests/gpu_model/interpreter/program.hpp"

namespace gpu_model {
namespace {

void collect(const ptx::Operand& o, std::vector<int>& to) {
  if (o.number >= 0) to.push_back(o.number);
  for (const auto& part : o.parts) collect(part, to);
}

bool writes_nothing(const std::string& operation) {
  for (const char* start :
       {"st.", "bra", "bar.sync", "bar.warp", "ret", "exit", "membar", "fence", "cp.", "nanosleep", "red.", "trap"})
    if (operation.starts_with(start)) return true;
  return false;
}

using Bits = std::vector<std::uint64_t>;
void set(Bits& b, int n) { b[static_cast<std::size_t>(n) / 64] |= std::uint64_t{1} << (n % 64); }
void clear(Bits& b, int n) { b[static_cast<std::size_t>(n) / 64] &= ~(std::uint64_t{1} << (n % 64)); }

struct Stretch {  // statements without a branch or a label between them
  std::size_t begin = 0, end = 0;
  std::vector<std::size_t> next;
  Bits in, out;
};

std::vector<Stretch> stretches(const ptx::KernelText& text) {
  const std::size_t n = text.statements.size();
  std::vector<char> begins(n + 1, 0);
  begins[0] = 1;
  for (const auto& [name, at] : text.labels) begins[at] = 1;
  const auto ends = [&](std::size_t s) {
    const auto& op = text.statements[s].operation;
    return op.starts_with("bra") || op == "ret" || op == "exit";
  };
  for (std::size_t s = 0; s < n; ++s)
    if (ends(s)) begins[s + 1] = 1;
  std::vector<Stretch> all;
  std::vector<std::size_t> of(n + 1, 0);
  for (std::size_t s = 0; s < n; ++s) {
    if (begins[s]) {
      if (!all.empty()) all.back().end = s;
      all.emplace_back().begin = s;
    }
    of[s] = all.size() - 1;
  }
  all.back().end = n;
  for (Stretch& b : all) {
    const auto& last = text.statements[b.end - 1];
    const bool leaves = ends(b.end - 1);
    if (last.operation.starts_with("bra")) b.next.push_back(of[text.labels.at(last.operands[0].name)]);
    if ((!leaves || last.guard >= 0) && b.end < n) b.next.push_back(of[b.end]);
  }
  return all;
}

}  // namespace

Uses uses_of(const ptx::Statement& s) {
  Uses u;
  if (s.guard >= 0) u.reads.push_back(s.guard);
  const bool none = writes_nothing(s.operation);
  for (std::size_t k = 0; k < s.operands.size(); ++k) {
    const auto& o = s.operands[k];
    const bool written = !none && (k == 0 || o.kind == ptx::Operand::kSecond);
    collect(o, written ? u.writes : u.reads);
  }
  // Where a guard says no, the old value stays.
  if (s.guard >= 0) u.reads.insert(u.reads.end(), u.writes.begin(), u.writes.end());
  return u;
}

Rows allot_rows(const ptx::KernelText& text) {
  const std::size_t count = text.registers.size(), words = count / 64 + 1;
  auto all = stretches(text);
  std::vector<Uses> uses;
  for (const auto& s : text.statements) uses.push_back(uses_of(s));
  for (auto& b : all) b.in.assign(words, 0), b.out.assign(words, 0);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t k = all.size(); k-- > 0;) {
      Stretch& b = all[k];
      Bits alive(words, 0);
      for (const std::size_t n : b.next)
        for (std::size_t w = 0; w < words; ++w) alive[w] |= all[n].in[w];
      b.out = alive;
      for (std::size_t s = b.end; s-- > b.begin;) {
        for (const int r : uses[s].writes) clear(alive, r);
        for (const int r : uses[s].reads) set(alive, r);
      }
      if (alive != b.in) b.in = std::move(alive), changed = true;
    }
  }
  // Each register lives from its first place to its last one.
  struct Life {
    std::size_t begin = std::numeric_limits<std::size_t>::max(), end = 0;
    int number = 0;
  };
  std::vector<Life> lives(count);
  for (std::size_t r = 0; r < count; ++r) lives[r].number = static_cast<int>(r);
  const auto live_at = [&](int r, std::size_t at) {
    Life& life = lives[static_cast<std::size_t>(r)];
    life.begin = std::min(life.begin, at);
    life.end = std::max(life.end, at);
  };
  for (const Stretch& b : all) {
    for (std::size_t r = 0; r < count; ++r) {
      if (b.in[r / 64] >> (r % 64) & 1) live_at(static_cast<int>(r), 2 * b.begin);
      if (b.out[r / 64] >> (r % 64) & 1) live_at(static_cast<int>(r), 2 * b.end);
    }
    for (std::size_t s = b.begin; s < b.end; ++s) {
      for (const int r : uses[s].reads) live_at(r, 2 * s);
      for (const int r : uses[s].writes) live_at(r, 2 * s + 1);
    }
  }
  std::sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) { return a.begin < b.begin; });

  Rows rows;
  rows.of_register.assign(count, kNoRow);
  for (const auto& r : text.registers)
    if (r.bits == 1) rows.predicate_bytes += 4;
  rows.predicate_bytes = (rows.predicate_bytes + 127) / 128 * 128;
  rows.register_bytes = rows.predicate_bytes;
  Row next_predicate = 0;
  struct Free {
    std::vector<Row> rows;
    std::vector<std::pair<std::size_t, Row>> busy;  // until when
  } narrow, wide;
  for (const Life& life : lives) {
    if (life.end == 0 && life.begin > life.end) continue;  // never used
    const unsigned bits = text.registers[static_cast<std::size_t>(life.number)].bits;
    Row& row = rows.of_register[static_cast<std::size_t>(life.number)];
    if (bits == 1) {
      row = next_predicate;
      next_predicate += 4;
      continue;
    }
    Free& pool = bits == 64 ? wide : narrow;
    std::erase_if(pool.busy, [&](const auto& b) {
      if (b.first >= life.begin) return false;
      pool.rows.push_back(b.second);
      return true;
    });
    if (pool.rows.empty()) {
      row = rows.register_bytes;
      rows.register_bytes += bits == 64 ? 256 : 128;
    } else {
      row = pool.rows.back();
      pool.rows.pop_back();
    }
    pool.busy.emplace_back(life.end, row);
  }
  return rows;
}

}  // namespace gpu_model
