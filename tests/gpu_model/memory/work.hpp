// Work: what a program has put on streams, and which of it comes after which. A piece of work is a kernel, a copy, a
// fill or a library's call. Its number is its place in the order of the calls; whether it is ordered behind another one
// is told by vector clocks (one entry a stream), as events, waits of the host and streams' own order make them.
#pragma once

#include <cstdint>
#include <string>

namespace gpu_model {

using WorkNumber = std::uint32_t;  // from 1; 0: before all work (ordered before everything)

// A new piece of work at the end of `stream` (an index of the model's, from 0; all devices'), behind all that the
// stream and the calling host have waited for.
WorkNumber add_work(int stream, std::string what, int device = 0);
int device_of(WorkNumber work);
// The number that the next piece of work will get: what is made or freed now is made or freed before it.
WorkNumber next_work();

// Whether `later` is ordered behind `earlier`.
bool comes_after(WorkNumber later, WorkNumber earlier);
// Words for messages: "kernel sweep (no. 17, stream 2)".
std::string words(WorkNumber work);

// A place in a stream's queue (an event's record, a stream's present end).
struct Place {
  int stream = -1;  // nothing to wait for
  std::uint32_t position = 0;
  std::uint32_t clock = 0;  // an index into the model's table of clocks
};
Place end_of(int stream);
void stream_waits(int stream, const Place& place);  // work added to `stream` from now on comes after `place`
void host_waited(const Place& place);               // and all that is added anywhere
bool host_knows(const Place& place);                // whether the host has waited for all that is there

// Whether work is queued: all of it below first_queued() has been carried out.
void work_carried_out(WorkNumber work);
WorkNumber first_queued();

}  // namespace gpu_model
