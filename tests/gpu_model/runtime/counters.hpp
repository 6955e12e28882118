// How often the host has waited for the modelled GPUs.
#pragma once

#include <atomic>
#include <cstdint>

namespace gpu_model {

inline std::atomic<std::uint64_t> host_waits{0};  // where work had not been carried out: for streams, events, copies

}  // namespace gpu_model
