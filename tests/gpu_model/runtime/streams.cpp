#include "tests/gpu_model/runtime/streams.hpp"

#include <list>
#include <utility>
#include <vector>

#include "tests/gpu_model/report.hpp"
#include "tests/gpu_model/runtime/call.hpp"

namespace gpu_model {
namespace {

struct Table {
  std::list<Stream> streams;
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

}  // namespace

std::list<Stream>& all_streams() { return table().streams; }

Stream* find_stream(cudaStream_t handle) {
  for (Stream& s : table().streams)
    if (reinterpret_cast<cudaStream_t>(&s) == handle && !s.destroyed) return &s;
  return nullptr;
}

cudaStream_t make_stream() {
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
  return reinterpret_cast<cudaStream_t>(&s);
}

void destroy_stream(Stream& stream) {
  stream.destroyed = true;
  sweep_destroyed();
}

WorkNumber add_to(Stream& stream, std::string what, std::function<Progress(WorkNumber)> carry_out) {
  const WorkNumber number = add_work(stream.index, std::move(what), stream.device);
  stream.queue.push_back({number, std::move(carry_out), nullptr, nullptr});
  return number;
}

MarkPointer mark_end(Stream& stream) {
  const Place end = end_of(stream.index);
  auto mark = std::make_shared<Mark>(Mark{&stream, end, false, 0});
  stream.queue.push_back({0, nullptr, mark, nullptr});
  return mark;
}

cudaError_t no_handle(const std::string& where) {
  report({"invalid handle", where, "the stream or event is none, or was destroyed"});
  return cudaErrorInvalidResourceHandle;
}

cudaError_t wrong_device(const std::string& where, int other, int device) {
  report({"wrong device", where, "of GPU " + std::to_string(other) + " for one of GPU " + std::to_string(device)});
  return cudaErrorInvalidResourceHandle;
}

void wait_in(Stream& stream, const MarkPointer& mark) {
  stream_waits(stream.index, mark->place);
  if (!mark->reached) stream.queue.push_back({0, nullptr, nullptr, mark});
}

}  // namespace gpu_model
