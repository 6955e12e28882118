// Joins two networks: peers that hold one of its keys are connected to its configured destinations, or to hidden
// listeners registered with it. It forwards the peers' bytes, encrypted under their own keys, and changes none of them.
//
// It listens on one port only, and connects only to its configured destinations: a peer sends the name of one, never an
// address.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "wan/net/error.hpp"
#include "wan/net/relay/admission.hpp"
#include "wan/net/relay/connector.hpp"
#include "wan/net/settings.hpp"
#include "wan/net/socket/event_loop.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan {

struct RelaySettings {
  Endpoint listen;                     // an empty host: every address; port 0: any free one
  std::vector<std::string> key_files;  // or directories, whose *.key files count
  std::map<std::string, Endpoint> destinations;
  PathSettings socket;  // window, congestion, local_address: of the sockets on both sides
  int threads = 0;      // that forward data; 0: one for each core, at most 4
  // Connections without a complete request; beyond so many the network with the most of them loses its oldest.
  int half_open = 256;
  int sessions = 4096;
  int sessions_per_key = 0;       // 0: half of them where there are several keys, else all
  int names = 256;                // hidden listeners
  double admission_timeout = 10;  // seconds for a peer's admission
  double answer_timeout = 8;      // for a destination or a hidden listener to answer
  double idle_timeout = 600;      // a session without data for so long is ended

  // Throws Error, naming the setting and its range.
  void check() const;
  // Descriptors that such a relay may need at once, if few sessions have bytes waiting in pipes both ways.
  std::size_t descriptors() const;
};

struct RelayStatus {
  int sessions = 0, half_open = 0, names = 0;
  std::uint64_t sessions_ever = 0, refused = 0;
  std::uint64_t bytes = 0;  // forwarded, both ways
};

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
    bool hung_up = false;  // seen while nothing can be moved: not watched until something can
  };

  End& other(const End& end) { return &end == &caller_ ? target_ : caller_; }
  void on_ready(End& end, bool readable, bool writable);
  bool flow(End& from);
  bool fail(End& dead);
  void linger();
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

class Relay;

// A connection accepted by a relay, until it is refused or passed on. In the loop's thread, where its relay may delete
// it inside any call.
class RelayClient final : private Pollable {
 public:
  using Then = std::function<void(RelayClient&)>;

  struct Connection {
    std::uint64_t number = 0;  // in the order of arrival
    Socket socket;
    Address address;  // of the client
  };
  RelayClient(EventLoop& loop, Relay& relay, const KeyRing& keys, Connection connection, double timeout);
  ~RelayClient() override;

  std::uint64_t number() const { return connection_.number; }
  const Address& address() const { return connection_.address; }
  bool admitted() const { return check_.admitted(); }
  const admission::Request& request() const { return check_.request(); }
  // Once, after Relay::asked(). `then` is called when the verdict is sent.
  void decide(const admission::Verdict& verdict, Then then);
  Socket take();  // the socket, from `then` on

 private:
  enum class Step { kAsking, kWaiting, kVerdict };
  void on_ready(bool readable, bool writable) override;
  void receive_request();
  void send_verdict();
  bool still_there() const;
  void leave(const std::string& why);
  void limit_time(const char* what);

  EventLoop& loop_;
  Relay& relay_;
  AdmissionCheck check_;
  Connection connection_;
  double timeout_;
  Step step_ = Step::kAsking;
  Then then_;
  EventLoop::Timer timer_ = 0;
};

// Its decisions (admission, targets, and the pairs of connections) are made in a thread of its own; other threads
// forward the bytes.
class Relay {
 public:
  // Listens on return. Throws Error, SecurityError.
  explicit Relay(const RelaySettings& settings);
  ~Relay();  // ends all sessions

  // Thread-safe.
  Endpoint address() const { return {acceptor_->address().host(), acceptor_->address().port()}; }  // as bound
  RelayStatus status();

  // Called by its clients, in the loop's thread.
  void asked(RelayClient& client);                         // decide() follows, now or later
  void gone(RelayClient& client, const std::string& why);  // nothing follows

 private:
  using Verdict = admission::Verdict;
  using Code = admission::Code;
  struct Registered {
    std::string key_id;
    Address from;
    std::unique_ptr<ControlChannel> control;
  };
  struct Call {
    std::uint64_t caller = 0;
    std::string name;
    std::string key_id;  // with which the listener registered
    EventLoop::Timer timer = 0;
  };
  struct Session {
    std::string key_id;
    std::string from, to;
  };

  void stop();  // accepts nobody any more; sessions go on
  void ended(const SessionReport& report);
  void take(Socket socket, const Address& address);
  void refuse(RelayClient& client, Code code, const std::string& reason);
  void refuse_caller(std::uint64_t caller, const std::string& reason);
  void drop(std::uint64_t client);
  void end_calls(const std::function<bool(const Call&)>& which);

  void connect(RelayClient& client);
  bool room_for(RelayClient& client);
  int sessions_per_key() const;  // 0: no limit of their own
  void dial(RelayClient& client, const HostAddresses& addresses);
  void call(RelayClient& client, Registered& listener);
  void answer(RelayClient& client);
  void join(std::uint64_t caller, Socket target, const std::string& to);
  void enroll(RelayClient& client);
  void enrolled(RelayClient& client);
  int names_of(const std::string& key_id) const;
  void unenroll(const std::string& name, const std::string& reason);

  RelaySettings settings_;
  KeyRing keys_;
  std::map<std::string, HostAddresses> destinations_;
  std::uint64_t next_ = 1, refused_ = 0, sessions_ever_ = 0;
  std::map<std::uint64_t, std::unique_ptr<RelayClient>> clients_;  // by number: those asking, and waiting for a target
  Crowd<RelayClient> strangers_;                                   // the former, by network
  std::map<std::uint64_t, std::unique_ptr<Connector>> dials_;      // by caller
  std::map<std::string, Call> calls_;                              // by token
  std::map<std::uint64_t, std::uint64_t> answers_;                 // answering client -> caller
  std::map<std::string, Registered> names_;
  std::map<std::uint64_t, Session> sessions_;
  PeerLog refusals_{[](const std::string& line) { log(LogLevel::kInfo, line); }};
  std::vector<std::unique_ptr<RelayPump>> pumps_;
  std::size_t next_pump_ = 0;
  std::unique_ptr<Acceptor> acceptor_;
  EventLoop loop_{"relay"};  // last: its thread uses all the rest
};

}  // namespace maki::wan
