// Streams' queues. Work is only queued by a call; it is carried out when somebody waits for it (or asks often enough),
// one piece at a time, in an order drawn from the seed among all that streams and events allow.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "tests/gpu_model/memory/work.hpp"
#include "tests/gpu_model/runtime/call.hpp"

namespace gpu_model {

enum class Progress { kDone, kNotYet };  // kNotYet: nothing was done; it has to be asked again later (a peer's message)

// Puts work at the end of `stream`; `carry_out` gets its number when its turn comes. It may throw Stopped (report.hpp),
// which becomes the error of the stream's device. Thread-safe; called without the model's lock held by the caller.
void queue_work(cudaStream_t stream, std::string what, std::function<Progress(WorkNumber)> carry_out);

// From now on a thread of the model's own carries out work that nobody waits for, late (after 20 ms without progress):
// a peer in another process may wait for it.
void keep_moving();

// Streams and events as the runtime's calls see them. All functions are called with the model's lock held; those that
// get it release it while they wait.

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
  bool destroyed = false;
  std::deque<Queued> queue;
};

struct Event {
  int device = 0;
  bool timed = true;
  MarkPointer mark;  // nullptr: never recorded
};

// nullptr: not a stream. The default streams are not modelled: Maki uses none that blocks.
Stream* find_stream(cudaStream_t handle);
// Reports of calls that get none, or that of another GPU.
cudaError_t no_handle(const std::string& where);
cudaError_t wrong_device(const std::string& where, int other, int device);
cudaStream_t make_stream();
void destroy_stream(Stream& stream);

WorkNumber add_to(Stream& stream, std::string what, std::function<Progress(WorkNumber)> carry_out);
MarkPointer mark_end(Stream& stream);
void wait_in(Stream& stream, const MarkPointer& mark);
std::list<Stream>& all_streams();

// carry_out.cpp
inline std::atomic<std::uint64_t> host_waits{0};  // times that the host has waited for work not yet carried out
// The host waits; other work may be carried out before what it waits for.
void wait_for(Lock& lock, const MarkPointer& mark);
void wait_for_device(Lock& lock, int device);
// The host asks: a few pieces of work are carried out. True: the mark was reached.
bool ask(Mark& mark);

}  // namespace gpu_model
