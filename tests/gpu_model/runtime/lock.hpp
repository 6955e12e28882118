// The model's lock: every call of the program takes it, and it is held while a piece of work is carried out.
#pragma once

#include <mutex>

namespace gpu_model {

class Lock {
 public:
  Lock() { take(); }
  ~Lock() { release(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void take();
  void release();
  static bool held();  // by this thread
};

}  // namespace gpu_model
