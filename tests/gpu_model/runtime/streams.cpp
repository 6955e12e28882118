#include "tests/gpu_model/runtime/streams.hpp"

#include <list>
#include <map>
#include <utility>
#include <vector>

#include "tests/gpu_model/runtime/call.hpp"

namespace gpu_model {
namespace {

struct Table {
  std::list<Stream> streams;
  std::map<int, Stream*> legacy;  // of each device
  std::vector<int> free_indices;
  int next_index = 0;
};

Table& table() {
  static auto* t = new Table;
  return *t;
}

// Streams that were destroyed, and whose work the host has waited for, leave their index to others.
void sweep_destroyed() {
  std::erase_if(table().streams, [](const Stream& s) {
    if (!s.destroyed || !s.queue.empty()) return false;
    if (host_knows(end_of(s.index))) table().free_indices.push_back(s.index);
    return true;
  });
}

Stream& add_stream(bool blocking) {
  Table& t = table();
  sweep_destroyed();
  Stream& s = t.streams.emplace_back();
  if (t.free_indices.empty()) {
    s.index = t.next_index++;
  } else {
    s.index = t.free_indices.back();
    t.free_indices.pop_back();
  }
  s.device = current_device();
  s.blocking = blocking;
  return s;
}

Stream& legacy_stream(int device) {
  Stream*& s = table().legacy[device];
  if (!s) {
    s = &add_stream(false);
    s->legacy = true;
  }
  return *s;
}

Stream& thread_stream(int device) {
  thread_local std::map<int, Stream*> streams;
  Stream*& s = streams[device];
  if (!s) s = &add_stream(true);
  return *s;
}

MarkPointer push_mark(Stream& stream) {
  const Place end = end_of(stream.index);
  auto mark = std::make_shared<Mark>(Mark{&stream, end, false, 0});
  stream.queue.push_back({0, nullptr, mark, nullptr});
  return mark;
}

void order_behind(Stream& stream, Stream& other) {
  if (other.queue.empty()) return stream_waits(stream.index, end_of(other.index));
  wait_in(stream, push_mark(other));
}

// The legacy default stream and blocking streams of the device wait for each other.
void order_with_legacy(Stream& stream) {
  const auto legacy = table().legacy.find(stream.device);
  if (stream.blocking && legacy != table().legacy.end()) order_behind(stream, *legacy->second);
  if (!stream.legacy) return;
  for (Stream& s : table().streams)
    if (s.blocking && s.device == stream.device) order_behind(stream, s);
}

}  // namespace

std::list<Stream>& all_streams() { return table().streams; }

Stream* find_stream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return &legacy_stream(current_device());
  if (handle == cudaStreamPerThread) return &thread_stream(current_device());
  for (Stream& s : table().streams)
    if (reinterpret_cast<cudaStream_t>(&s) == handle && !s.destroyed) return &s;
  return nullptr;
}

cudaStream_t make_stream(bool blocking) { return reinterpret_cast<cudaStream_t>(&add_stream(blocking)); }

void destroy_stream(Stream& stream) {
  stream.destroyed = true;
  sweep_destroyed();
}

WorkNumber add_to(Stream& stream, std::string what, std::function<Progress(WorkNumber)> carry_out) {
  order_with_legacy(stream);
  const WorkNumber number = add_work(stream.index, std::move(what), stream.device);
  stream.queue.push_back({number, std::move(carry_out), nullptr, nullptr});
  return number;
}

MarkPointer mark_end(Stream& stream) {
  order_with_legacy(stream);
  return push_mark(stream);
}

void wait_in(Stream& stream, const MarkPointer& mark) {
  stream_waits(stream.index, mark->place);
  if (!mark->reached) stream.queue.push_back({0, nullptr, nullptr, mark});
}

}  // namespace gpu_model
