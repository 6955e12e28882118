// Streams' queues. Work is only queued by a call; it is carried out when somebody waits for it (or asks often enough), one
// piece at a time, in an order drawn from the seed among all that streams and events allow.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>

#include "tests/gpu_model/memory/work.hpp"

namespace gpu_model {

enum class Progress { kDone, kNotYet };  // kNotYet: nothing was done; it has to be asked again later (a peer's message)

// Puts work at the end of `stream`; `carry_out` gets its number when its turn comes. It may throw Stopped (report.hpp),
// which becomes the error of the stream's device. Thread-safe; called without the model's lock held by the caller.
WorkNumber queue_work(cudaStream_t stream, std::string what, std::function<Progress(WorkNumber)> carry_out);

// From now on a thread of the model's own carries out work that nobody waits for, late (after 20 ms without progress): a peer
// in another process may wait for it.
void keep_moving();

}  // namespace gpu_model
