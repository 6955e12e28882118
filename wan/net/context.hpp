// The persistent I/O threads that serve all paths of a process. No call starts a thread of its own.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

namespace maki::wan {

class EventLoop;

class Context {
 public:
  explicit Context(int threads = 1);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  EventLoop& next_loop();  // in turn; a path stays with its loop

  // For callers that need no Context of their own: one thread, made at first use.
  static Context& shared();

 private:
  std::vector<std::unique_ptr<EventLoop>> loops_;
  std::atomic<unsigned> next_{0};
};

}  // namespace maki::wan
