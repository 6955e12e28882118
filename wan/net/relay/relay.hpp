// Joins two networks: peers that hold one of its keys are connected to its configured destinations, or to hidden
// listeners registered with it. It forwards the peers' bytes, encrypted under their own keys, and changes none of them.
//
// It listens on one port only, and connects only to its configured destinations: a peer sends the name of one, never an
// address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "wan/net/relay/admission.hpp"
#include "wan/net/relay/connector.hpp"
#include "wan/net/relay/session.hpp"
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
  int half_open =
      256;  // connections without a complete request; beyond it the network with the most of them loses its oldest
  int sessions = 4096;
  int sessions_per_key = 0;       // 0: no separate limit
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

// Its decisions (admission, targets, and the pairs of connections) are taken in a thread of its own; other threads
// forward the bytes.
class Relay {
 public:
  // Thread-safe. Listens on return. Throws Error, SecurityError.
  explicit Relay(const RelaySettings& settings);
  ~Relay();  // ends all sessions
  // With the port that was bound.
  Endpoint address() const { return {acceptor_->address().host(), acceptor_->address().port()}; }
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
  using Clients = std::map<std::uint64_t, std::unique_ptr<RelayClient>>;  // in the order of their arrival

  void stop();  // accepts nobody any more; sessions go on
  void ended(const SessionReport& report);
  void take(Socket socket, const Address& address);
  void refuse(RelayClient& client, Code code, const std::string& reason);
  void refuse_caller(std::uint64_t caller, const std::string& reason);
  void drop(std::uint64_t client);
  void end_calls(const std::function<bool(const Call&)>& which);

  void connect(RelayClient& client);
  bool room_for(RelayClient& client);
  void dial(RelayClient& client, const std::vector<Address>& addresses);
  void call(RelayClient& client, Registered& listener);
  void answer(RelayClient& client);
  void join(std::uint64_t caller, Socket target, const std::string& to);
  void enroll(RelayClient& client);
  void enrolled(RelayClient& client);
  void unenroll(const std::string& name, const std::string& reason);
  void note(const std::string& text);

  RelaySettings settings_;
  KeyRing keys_;
  std::map<std::string, std::vector<Address>> destinations_;
  std::uint64_t next_ = 1, refused_ = 0, sessions_ever_ = 0;
  Clients asking_;                                             // not admitted yet
  Crowd<RelayClient> strangers_;                               // the same, by network
  Clients waiting_;                                            // for their target
  std::map<std::uint64_t, std::unique_ptr<Connector>> dials_;  // by caller
  std::map<std::string, Call> calls_;                          // by token
  std::map<std::uint64_t, std::uint64_t> answers_;             // answering client -> caller
  std::map<std::string, Registered> names_;
  std::map<std::uint64_t, Session> sessions_;
  EventLoop::Clock::time_point note_second_{};
  int notes_ = 0;
  std::vector<std::unique_ptr<RelayPump>> pumps_;
  std::size_t next_pump_ = 0;
  std::unique_ptr<Acceptor> acceptor_;
  EventLoop loop_{"relay"};  // last: its thread uses all the rest
};

}  // namespace maki::wan
