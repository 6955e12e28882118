// What the program has asked of the runtime since it began.
#pragma once

#include <atomic>
#include <cstdint>

namespace gpu_model {

struct Counters {
  std::atomic<std::uint64_t> waits{0};  // of the host, where work had not been carried out: streams, events, copies
};
Counters& counters();

}  // namespace gpu_model
