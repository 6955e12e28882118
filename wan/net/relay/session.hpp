// Two sockets joined: both directions, and how they end.
//
// An end of writing is passed on (the other direction flows on). A side that breaks ends the session: what came from it before is
// still delivered, then the other side is closed, as it would be if the two were connected directly.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "wan/net/relay/splice_pipe.hpp"
#include "wan/net/socket/event_loop.hpp"

namespace maki::wan {

class RelaySession {
 public:
  using Clock = EventLoop::Clock;
  using Ended = std::function<void(const std::string& how)>;
  // In the loop's thread, as all that follows. `total` counts the bytes of all sessions. `ended` is called once, and the session
  // may be deleted inside it.
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
    bool hung_up = false;  // reported while nothing could be done about it
  };

  End& other(const End& end) { return &end == &caller_ ? target_ : caller_; }
  void on_ready(End& end, bool readable, bool writable);
  bool flow(End& from);
  bool fail(End& dead);
  void watch(End& end);
  void forget(End& end);

  EventLoop& loop_;
  std::atomic<std::uint64_t>& total_;
  Ended ended_;
  End caller_, target_;
  End* failed_ = nullptr;  // broken: only what it sent before is still delivered
  EventLoop::Timer linger_ = 0;
  Clock::time_point last_moved_ = Clock::now();
};

}  // namespace maki::wan
