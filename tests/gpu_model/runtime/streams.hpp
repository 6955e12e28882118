// Streams and events as the runtime's calls see them. All functions are called with the model's lock held; those that get it
// release it while they wait.
#pragma once

#include <cuda_runtime_api.h>

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "tests/gpu_model/memory/work.hpp"
#include "tests/gpu_model/runtime/lock.hpp"
#include "tests/gpu_model/runtime/queue.hpp"

namespace gpu_model {

struct Stream;

// A place in a stream that an event (or a wait of the host) stands for.
struct Mark {
  Stream* stream = nullptr;
  Place place;
  bool reached = false;
  double milliseconds = 0;  // of the model's clock, when it was reached
};
using MarkPointer = std::shared_ptr<Mark>;

// What stands in a stream's queue: work, a mark to reach, or a mark to wait for.
struct Queued {
  WorkNumber number = 0;
  std::function<Progress(WorkNumber)> carry_out;
  MarkPointer reach, wait_for;
};

struct Stream {
  int index = -1;  // of work.hpp
  int device = 0;
  bool blocking = true;  // waits for the legacy default stream, and it for this one
  bool legacy = false;
  bool destroyed = false;
  std::deque<Queued> queue;
};

struct Event {
  int device = 0;
  bool timed = true;
  MarkPointer mark;  // nullptr: never recorded
};

// nullptr: not a stream. The default streams belong to the current device.
Stream* find_stream(cudaStream_t handle);
cudaStream_t make_stream(bool blocking);
void destroy_stream(Stream& stream);

WorkNumber add_to(Stream& stream, std::string what, std::function<Progress(WorkNumber)> carry_out);
MarkPointer mark_end(Stream& stream);
void wait_in(Stream& stream, const MarkPointer& mark);
std::list<Stream>& all_streams();

// carry_out.cpp
// The host waits; other work may be carried out before what it waits for.
void wait_for(Lock& lock, const MarkPointer& mark);
void wait_for_device(Lock& lock, int device);
// The host asks: a few pieces of work are carried out. True: the mark was reached.
bool ask(Mark& mark);

}  // namespace gpu_model
