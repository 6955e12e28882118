// The I/O threads that serve all paths of a process, and one apart for those who come to its listeners: until they have
// shown who they are, what they cost is their own. Each thread starts when it is first needed and stays.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace maki::wan {

class EventLoop;

class Context {
 public:
  explicit Context(int threads = 1);  // for paths, at most
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  EventLoop& next_loop();   // in turn; a path stays with its loop
  EventLoop& handshakes();  // for listeners, and for connections until they belong to a path

  // For callers that need no Context of their own: a thread for each core, at most eight.
  static Context& shared();

 private:
  std::mutex mutex_;  // of all that follows
  std::vector<std::unique_ptr<EventLoop>> loops_;
  std::unique_ptr<EventLoop> handshakes_;
  std::size_t next_ = 0;
};

}  // namespace maki::wan
