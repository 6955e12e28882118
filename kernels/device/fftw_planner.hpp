// FFTW's planner is the one part of it that is not thread-safe: who plans, or touches wisdom, holds this lock.
#pragma once

#include <mutex>

namespace maki {

inline std::mutex& fftw_planner() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace maki
