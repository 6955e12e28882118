// A relay's decisions, and the connections that they are about.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "wan/net/error.hpp"
#include "wan/net/relay/admission.hpp"
#include "wan/net/relay/connector.hpp"
#include "wan/net/relay/relay.hpp"
#include "wan/net/relay/session.hpp"
#include "wan/net/socket/event_loop.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan {

class RelayCore;

// A connection accepted by a relay, until it is refused or passed on. In the loop's thread, where its core may delete
// it inside any call.
class RelayClient final : private Pollable {
 public:
  using Then = std::function<void(RelayClient&)>;

  struct Connection {
    std::uint64_t number = 0;  // in the order of arrival
    Socket socket;
    Address address;  // of the client
  };
  RelayClient(EventLoop& loop, RelayCore& core, const KeyRing& keys, Connection connection, double timeout);
  ~RelayClient() override;

  std::uint64_t number() const { return connection_.number; }
  const Address& address() const { return connection_.address; }
  bool admitted() const { return check_.admitted(); }
  const admission::Request& request() const { return check_.request(); }
  // Once, after RelayCore::asked(). `then` is called when the verdict is sent.
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
  RelayCore& core_;
  AdmissionCheck check_;
  Connection connection_;
  double timeout_;
  Step step_ = Step::kAsking;
  Then then_;
  EventLoop::Timer timer_ = 0;
};

// A relay's decisions: admission, targets, and the pairs of connections. In a thread of its own; other threads forward
// the bytes.
class RelayCore {
 public:
  // Thread-safe. `threads`: those that forward bytes.
  RelayCore(const RelaySettings& settings, int threads);
  ~RelayCore();
  Address address() const { return acceptor_->address(); }
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
  Clients asking_;                                             // not admitted yet
  Crowd<RelayClient> strangers_;                               // the same, by network
  Clients waiting_;                                            // for their target
  std::map<std::uint64_t, std::unique_ptr<Connector>> dials_;  // by caller
  std::map<std::string, Call> calls_;                          // by token
  std::map<std::uint64_t, std::uint64_t> answers_;             // answering client -> caller
  std::map<std::string, Registered> names_;
  std::map<std::uint64_t, Session> sessions_;
  PeerLog refusals_{[](const std::string& line) { log(LogLevel::kInfo, line); }};
  std::vector<std::unique_ptr<RelayPump>> pumps_;
  std::size_t next_pump_ = 0;
  std::unique_ptr<Acceptor> acceptor_;
  EventLoop loop_{"relay"};  // last: its thread uses all the rest
};

}  // namespace maki::wan
