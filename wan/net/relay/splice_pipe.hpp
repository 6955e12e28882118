// One direction of a relayed session: bytes from one socket to another through a pipe (splice(2)), so that they never enter the
// relay's memory. What does not fit into the target stays in the pipe, and nothing more is read until it has gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "wan/net/socket/tcp.hpp"

namespace maki::wan {

// Pipes for the splice pipes of one loop. A splice pipe has one only while it holds bytes, so idle sessions cost none.
class PipePool {
 public:
  struct Pipe {
    Socket out, in;  // to read from, to write to
    std::size_t size = 0;
    bool open() const { return in.open(); }
  };
  Pipe take();           // Throws Error where the process has no descriptors left.
  void give(Pipe pipe);  // an empty one

 private:
  std::vector<Pipe> free_;
};

class SplicePipe {
 public:
  enum class Result {
    kFlowing,       // until the sockets are ready again, or finished()
    kSourceFailed,  // all that came before has gone to the target
    kTargetFailed,
  };

  explicit SplicePipe(PipePool& pipes) : pipes_(pipes) {}
  // What goes now, but not for ever. The source's end is passed on as the target's (shutdown). Throws Error (no pipe).
  Result move(int source, int target);
  bool wants_source() const { return !finished_ && held_ == 0; }  // to be readable
  bool wants_target() const { return held_ > 0; }                 // to be writable
  bool finished() const { return finished_; }                     // the end was passed on
  std::uint64_t bytes() const { return bytes_; }                  // that the target has taken

 private:
  enum class Step { kGone, kBlocked, kEnd, kFailed };
  Step fill(int source);
  Step drain(int target);
  void release();

  PipePool& pipes_;
  PipePool::Pipe pipe_;
  std::size_t held_ = 0;
  std::uint64_t bytes_ = 0;
  bool finished_ = false;
};

}  // namespace maki::wan
