// What the program has asked of the runtime since it began.
#pragma once

#include <atomic>
#include <cstdint>

namespace gpu_model {

struct Counters {
  std::atomic<std::uint64_t> waits{0};  // of the host, where work had not been carried out: streams, events, copies
  std::atomic<std::uint64_t> queries{0};
  std::atomic<std::uint64_t> bytes_to_device{0}, bytes_to_host{0}, bytes_on_device{0};
};
Counters& counters();

}  // namespace gpu_model
