// Sessions of a relay: one direction, a pair of sockets, and the thread that forwards the bytes of many.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "wan/net/socket/event_loop.hpp"
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
  static constexpr std::size_t kFree = 16;  // at most this many are kept

  Pipe take();           // not open if the process is out of descriptors
  void give(Pipe pipe);  // an empty one

 private:
  std::vector<Pipe> free_;
};

// One direction of a relayed session: moves bytes from one socket to another through a pipe (splice(2)), without
// copying them to the relay's memory. Bytes that do not fit into the target stay in the pipe, and nothing more is read
// until they have left.
class SplicePipe {
 public:
  enum class Result {
    kFlowing,       // until the sockets are ready again, or finished()
    kSourceFailed,  // all earlier bytes have reached the target
    kTargetFailed,
  };

  explicit SplicePipe(PipePool& pipes) : pipes_(pipes) {}
  // Moves what is possible now, for a limited time. The end of the source is passed on to the target (shutdown).
  Result move(int source, int target);
  bool wants_source() const { return !finished_ && held_ == 0; }  // to be readable
  bool wants_target() const { return held_ > 0; }                 // to be writable
  bool starved() const { return starved_; }                       // out of pipes: retry move() later
  bool finished() const { return finished_; }                     // the end was passed on
  std::uint64_t bytes() const { return bytes_; }                  // written to the target

 private:
  enum class Step { kGone, kBlocked, kEnd, kFailed };
  Step fill(int source);
  Step drain(int target);
  void release();

  PipePool& pipes_;
  PipePool::Pipe pipe_;
  std::size_t held_ = 0;
  std::uint64_t bytes_ = 0;
  bool starved_ = false, finished_ = false;
};

// Two sockets joined: both directions, and how they end.
//
// The end of one direction is passed on, and the other direction continues. A broken side ends the session: its earlier
// data are still delivered, then the other side is closed, as if the two were connected directly.
class RelaySession {
 public:
  using Clock = EventLoop::Clock;
  using Ended = std::function<void(const std::string& how)>;
  // In the loop's thread, as all that follows. `total` counts the bytes of all sessions. `ended` is called once, and
  // may delete the session.
  RelaySession(EventLoop& loop, PipePool& pipes, Socket caller, Socket target, std::atomic<std::uint64_t>& total,
               Ended ended);
  ~RelaySession();
  RelaySession(const RelaySession&) = delete;
  RelaySession& operator=(const RelaySession&) = delete;

  std::uint64_t there() const { return caller_.onward.bytes(); }  // bytes from the caller to the target
  std::uint64_t back() const { return target_.onward.bytes(); }
  Clock::time_point last_moved() const { return last_moved_; }
  void end(const std::string& how);

 private:
  struct End final : Pollable {
    End(RelaySession& session, const char* name, PipePool& pipes, Socket socket)
        : session(session), name(name), socket(std::move(socket)), onward(pipes) {}
    void on_ready(bool readable, bool writable) override { session.on_ready(*this, readable, writable); }
    RelaySession& session;
    const char* name;
    Socket socket;
    SplicePipe onward;  // to the other end
    bool watched = false;
    bool hung_up = false;  // reported while it could not be handled
  };

  End& other(const End& end) { return &end == &caller_ ? target_ : caller_; }
  void on_ready(End& end, bool readable, bool writable);
  bool flow(End& from);
  bool fail(End& dead);
  void try_again();
  void watch(End& end);
  void forget(End& end);

  EventLoop& loop_;
  std::atomic<std::uint64_t>& total_;
  Ended ended_;
  End caller_, target_;
  End* failed_ = nullptr;  // broken: only its earlier data are still delivered
  EventLoop::Timer linger_ = 0, again_ = 0;
  Clock::time_point last_moved_ = Clock::now();
};

struct SessionReport {
  std::uint64_t number = 0;
  std::uint64_t there = 0, back = 0;  // bytes from the caller to the target, and back
  double seconds = 0;
  std::string how;  // reason of the end
};

// A thread of a relay that forwards bytes, with its share of the sessions.
class RelayPump {
 public:
  using Ended = std::function<void(const SessionReport&)>;  // in the pump's thread
  // A session without data for `idle_timeout` seconds is ended.
  RelayPump(const std::string& thread_name, double idle_timeout, Ended ended);
  ~RelayPump();  // ends all sessions, and reports them

  void add(std::uint64_t number, Socket caller, Socket target);                   // any thread
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }  // moved since the start

 private:
  struct Running {
    std::unique_ptr<RelaySession> session;
    EventLoop::Clock::time_point since;
  };
  void start(std::uint64_t number, Socket caller, Socket target);
  void ended(std::uint64_t number, const std::string& how);
  void watch_idle();

  double idle_timeout_;
  Ended ended_;
  std::atomic<std::uint64_t> bytes_{0};
  PipePool pipes_;
  std::map<std::uint64_t, Running> sessions_;
  EventLoop loop_;  // last: its thread uses all the rest
};

}  // namespace maki::wan
