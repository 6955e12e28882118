#include "tests/gpu_model/memory/work.hpp"

#include <algorithm>
#include <deque>
#include <unordered_set>
#include <vector>

namespace gpu_model {
namespace {

// How far each stream has been waited for: entry s is a position in stream s.
using Clock = std::vector<std::uint32_t>;

struct Piece {
  std::int32_t stream = -1;
  std::uint32_t position = 0;  // in its stream, from 1
  std::uint32_t clock = 0;     // what it comes after
  int device = 0;
  bool carried_out = false;
  const std::string* what = nullptr;
};

struct State {
  std::deque<Clock> clocks{Clock{}};
  std::vector<Piece> pieces{Piece{}};  // by number; the first stands for "before all work"
  std::vector<std::uint32_t> ends;     // of each stream: its last position, and ...
  std::vector<std::uint32_t> known;    // ... the clock of what is added next, without ...
  std::uint32_t host = 0;              // ... what the host has waited for
  std::unordered_set<std::string> names;
  WorkNumber first_queued = 1;
};

State& state() {
  static auto* s = new State;  // buffers of the program may outlive static destruction
  return *s;
}

bool holds(const Clock& c, int stream, std::uint32_t position) {
  const auto s = static_cast<std::size_t>(stream);
  return position == 0 || (s < c.size() && c[s] >= position);
}

bool covers(const Clock& c, const Clock& other) {
  for (std::size_t s = 0; s < other.size(); ++s)
    if (other[s] > (s < c.size() ? c[s] : 0)) return false;
  return true;
}

void raise(Clock& c, std::size_t stream, std::uint32_t position) {
  if (c.size() <= stream) c.resize(stream + 1);
  c[stream] = std::max(c[stream], position);
}

std::uint32_t joined(std::uint32_t a, std::uint32_t b) {
  State& s = state();
  if (covers(s.clocks[a], s.clocks[b])) return a;
  if (covers(s.clocks[b], s.clocks[a])) return b;
  Clock c = s.clocks[a];
  for (std::size_t k = 0; k < s.clocks[b].size(); ++k) raise(c, k, s.clocks[b][k]);
  s.clocks.push_back(std::move(c));
  return static_cast<std::uint32_t>(s.clocks.size() - 1);
}

std::uint32_t joined(std::uint32_t a, const Place& place) {
  State& s = state();
  if (place.stream < 0) return a;
  const std::uint32_t c = joined(a, place.clock);
  if (holds(s.clocks[c], place.stream, place.position)) return c;
  Clock with = s.clocks[c];
  raise(with, static_cast<std::size_t>(place.stream), place.position);
  s.clocks.push_back(std::move(with));
  return static_cast<std::uint32_t>(s.clocks.size() - 1);
}

std::size_t entry(int stream) {
  State& s = state();
  const auto k = static_cast<std::size_t>(stream);
  if (s.ends.size() <= k) s.ends.resize(k + 1), s.known.resize(k + 1);
  return k;
}

}  // namespace

WorkNumber add_work(int stream, std::string what, int device) {
  State& s = state();
  const std::size_t k = entry(stream);
  s.known[k] = joined(s.known[k], s.host);
  s.pieces.push_back({stream, ++s.ends[k], s.known[k], device, false, &*s.names.insert(std::move(what)).first});
  return static_cast<WorkNumber>(s.pieces.size() - 1);
}

int device_of(WorkNumber work) { return state().pieces[work].device; }

WorkNumber next_work() { return static_cast<WorkNumber>(state().pieces.size()); }

bool comes_after(WorkNumber later, WorkNumber earlier) {
  if (earlier == 0) return true;
  const State& s = state();
  const Piece &l = s.pieces[later], &e = s.pieces[earlier];
  if (l.stream == e.stream) return l.position > e.position;
  return holds(s.clocks[l.clock], e.stream, e.position);
}

std::string words(WorkNumber work) {
  if (work == 0) return "the start";
  const Piece& p = state().pieces[work];
  return *p.what + " (no. " + std::to_string(work) + ", stream " + std::to_string(p.stream) + ")";
}

Place end_of(int stream) {
  State& s = state();
  const std::size_t k = entry(stream);
  return {stream, s.ends[k], s.known[k]};
}

void stream_waits(int stream, const Place& place) {
  const std::size_t k = entry(stream);
  state().known[k] = joined(state().known[k], place);
}

void host_waited(const Place& place) { state().host = joined(state().host, place); }

bool host_knows(const Place& place) {
  return place.stream < 0 || holds(state().clocks[state().host], place.stream, place.position);
}

void work_carried_out(WorkNumber work) {
  State& s = state();
  s.pieces[work].carried_out = true;
  while (s.first_queued < s.pieces.size() && s.pieces[s.first_queued].carried_out) ++s.first_queued;
}

WorkNumber first_queued() { return state().first_queued; }

}  // namespace gpu_model
