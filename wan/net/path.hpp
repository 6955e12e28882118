// A path: a bundle of TCP streams to one peer that carries messages, matched by tag, and outlives its streams.
//
// Messages of one tag arrive exactly once, whole and in order: the n-th receive of a tag takes the n-th message of that
// tag. Different tags wait for one another only where data that came before their receive was posted fill the
// receiver's unmatched_limit. Short messages overtake long ones, and urgent ones the less urgent (urgent(), below).
// Thread-safe; the work is done by the I/O thread of the path's Context.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wan/net/error.hpp"
#include "wan/net/settings.hpp"

namespace maki::wan {

class EventLoop;
class PathCore;
class Operation;

// The I/O threads that serve all paths of a process, and a separate one for new connections to its listeners: the cost
// of unauthenticated callers stays there. Each thread starts when first needed and stays.
class Context {
 public:
  explicit Context(int threads = 1);  // for paths; at most this many
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  EventLoop& next_loop();   // round robin; a path stays with its loop
  EventLoop& handshakes();  // for listeners, and for connections that do not belong to a path yet

  // For callers without a Context of their own: a thread for each core, at most eight.
  static Context& shared();

 private:
  std::mutex mutex_;  // guards the members below
  std::vector<std::unique_ptr<EventLoop>> loops_;
  std::unique_ptr<EventLoop> handshakes_;
  std::size_t next_ = 0;
};

using Tag = std::uint64_t;
inline constexpr Tag kMaxTag = (Tag{1} << 62) - 1;  // higher ones are reserved for the library

// Priorities of messages. Messages up to 16 kB go before longer ones; within each group, those with a more urgent tag
// go first, also before the rest of a partly sent message. Data already in a socket (64 kB for each of several
// streams), or queued in the network, are not overtaken; pacing a little below the line's rate keeps the network's
// queues short.
inline constexpr int kMostUrgent = 62;

// A tag of urgency 0 (the least) is the tag itself; `tag` is below 2^56. Both sides must use the same.
inline constexpr Tag urgent(Tag tag, int urgency) { return tag | static_cast<Tag>(urgency) << 56; }
inline constexpr int urgency_of(Tag tag) { return tag > kMaxTag ? 0 : static_cast<int>(tag >> 56); }

// Memory of a message whose size only its sender knew.
struct Bytes {
  std::unique_ptr<std::byte[]> data;
  std::size_t size = 0;
  std::span<const std::byte> view() const { return {data.get(), size}; }
};

// A send or receive in progress. Its buffer belongs to the library until wait() returns or test() gives true. Copies
// refer to the same operation.
class Request {
 public:
  Request() = default;
  explicit Request(std::shared_ptr<Operation> operation) : operation_(std::move(operation)) {}
  bool valid() const { return operation_ != nullptr; }

  bool test();                    // whether done; throws what wait() would throw
  void wait();                    // throws PathError where the path was lost, Error where the message did not fit
  bool wait_for(double seconds);  // false if not done in time
  std::size_t size() const;       // of the message, once done
  Bytes take();                   // of receive_any, once done
  std::chrono::steady_clock::time_point done_at() const;  // receive: arrival of the last byte; send: all acknowledged

 private:
  std::shared_ptr<Operation> operation_;
};

struct PathStatus {
  std::string peer;      // "amsterdam at 1.2.3.4:6000"
  std::string identity;  // of the peer: key id, or the name in its certificate; empty when insecure
  bool up = false;       // at least one stream is up
  int streams_up = 0, streams = 0;
  double round_trip = 0;                                  // seconds, the shortest of the last heartbeats; 0: none yet
  double silent = 0;                                      // seconds since the peer was last heard
  std::uint64_t sent = 0, received = 0, outstanding = 0;  // payload bytes; outstanding: not yet acknowledged
  std::uint64_t reconnections = 0;
};

struct CallOptions {
  std::string name{};  // the caller's name at the listener; at most 63 bytes
  RelayRoute relay{};  // the relay on the way, if any
  double within = 0;   // time limit of the call, seconds; 0: the settings' patience
};

class Path {
 public:
  Path() = default;
  explicit Path(std::shared_ptr<PathCore> core) : core_(std::move(core)) {}
  ~Path();  // close(), for at most five seconds
  Path(Path&&) noexcept = default;
  Path& operator=(Path&&) noexcept;

  // Connects to a Listener, and returns when the session exists and at least one stream is up; the others follow.
  // Retries until the time limit, unless the peer refuses. Throws PathError, SecurityError, Error.
  static Path connect(const Endpoint& peer, const Security& security, const PathSettings& settings,
                      const CallOptions& options = {}, Context& context = Context::shared());

  // Blocking calls. A send up to 64 kB is copied and returns at once, while 64 MB of copies at most are unacknowledged;
  // else it returns when the peer has acknowledged all of it. Throw PathError, Error.
  void send(Tag tag, std::span<const std::byte> message);
  std::size_t receive(Tag tag, std::span<std::byte> buffer);  // size of the message, at most the buffer's
  Bytes receive_any(Tag tag, std::size_t limit);              // of unknown size, at most `limit`

  // The calls above without waiting. Buffers, but those of copies, must not be touched until the Request is done.
  Request start_send(Tag tag, std::span<const std::byte> message);
  Request start_send(Tag tag, Bytes message);  // owned by the library
  Request start_receive(Tag tag, std::span<std::byte> buffer);
  Request start_receive_any(Tag tag, std::size_t limit);

  // Changes a live path. Sizes, pacing and timeouts apply from now on, the window from each stream's next connection.
  // What both sides agreed on stays: streams, unmatched_limit, message_limit.
  void change(const PathSettings& settings);
  PathSettings settings() const;
  PathStatus status() const;
  void drop_stream(int number);  // breaks it like a failing network; it is reconnected (tests, tools)
  // Waits until all is acknowledged, tells the peer, and closes. False if `seconds` did not suffice: the rest is lost.
  // A path that is down has up to 5 of them to come up again and tell.
  bool close(double seconds = 60);
  bool valid() const { return core_ != nullptr; }

 private:
  std::shared_ptr<PathCore> core_;
};

// Calls a peer in the background, again and again until it answers. Its end waits for the attempt under way.
class PathCaller {
 public:
  // An attempt of at most so many seconds.
  using Call = std::function<Path(double within)>;
  // Called where an attempt has failed that may yet succeed: whether to go on. `early`: before its time was over.
  using GoesOn = std::function<bool(const PathError& error, bool early)>;

  // Calls at once. The first attempt has `first` seconds, later ones more, up to `longest`.
  PathCaller(Call call, double first, double longest, GoesOn goes_on);
  // To be polled: the path, once the peer has answered. Where there is no hope, as the peer refuses us, this side has
  // an error, or goes_on() says so, throws in this and every later call.
  std::optional<Path> take();
  void again();  // the path of take() was of no use: calls again, after a pause
  std::future<Path> leave() { return std::move(attempt_); }  // hands the attempt over, to be waited for elsewhere

 private:
  void begin();

  const Call call_;
  const GoesOn goes_on_;
  double within_, longest_;
  std::future<Path> attempt_;
  WallClock::time_point begun_, next_{};  // begin of the attempt; earliest time of the next
  std::chrono::milliseconds pause_{50};
  bool wanted_ = true;
  std::exception_ptr hopeless_;
};

}  // namespace maki::wan
