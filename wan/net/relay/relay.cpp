#include "wan/net/relay/relay.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "wan/net/error.hpp"
#include "wan/net/settings.hpp"

namespace maki::wan {
namespace {

void check_range(const char* name, double value, double least, double most) {
  if (!(value >= least && value <= most))
    throw Error(fmt::format("relay: {} = {:g}", name, value),
                fmt::format("it has to be from {:g} to {:g}", least, most));
}

int thread_count(const RelaySettings& settings) {
  const auto cores = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 4u));
  return settings.threads > 0 ? settings.threads : cores;
}

}  // namespace

void RelaySettings::check() const {
  socket.check();
  check_range("threads", threads, 0, 64);
  check_range("half_open", half_open, 1, 65536);
  check_range("sessions", sessions, 1, 1 << 20);
  check_range("sessions_per_key", sessions_per_key, 0, 1 << 20);
  check_range("names", names, 1, 65536);
  check_range("admission_timeout", admission_timeout, 0.01, 3600);
  check_range("answer_timeout", answer_timeout, 0.01, 3600);
  check_range("idle_timeout", idle_timeout, 0.01, 1e7);
  for (const auto& [name, endpoint] : destinations) {
    if (!admission::valid_name(name))
      throw Error(fmt::format("'{}' cannot be a name at a relay", name), "",
                  "use 1 to 63 printable characters without blanks");
    if (endpoint.host.empty() || endpoint.port == 0)
      throw Error(fmt::format("the destination '{}' has no host or no port", name), endpoint.text(),
                  "write NAME=HOST:PORT");
  }
}

std::size_t RelaySettings::descriptors() const {
  // Two sockets and a pipe; or, while connecting, the caller's socket and those to its destination.
  constexpr std::size_t kOfASession = std::max<std::size_t>(4, 1 + Connector::kAtOnce);
  constexpr std::size_t kOfAThread = 2 * PipePool::kFree + 8, kOthers = 100;
  return kOfASession * static_cast<std::size_t>(sessions) + static_cast<std::size_t>(half_open + names) +
         kOfAThread * static_cast<std::size_t>(thread_count(*this)) + kOthers;
}

// ---- a client, until it is refused or passed on --------------------------------------------------------------------

RelayClient::RelayClient(EventLoop& loop, Relay& relay, const KeyRing& keys, Connection connection, double timeout)
    : loop_(loop), relay_(relay), check_(keys), connection_(std::move(connection)), timeout_(timeout) {
  loop_.watch(connection_.socket.descriptor(), true, true, *this);
  limit_time("did not say what it wants");
}

RelayClient::~RelayClient() {
  loop_.cancel(timer_);
  if (connection_.socket.open()) loop_.forget(connection_.socket.descriptor());
}

void RelayClient::limit_time(const char* what) {
  loop_.cancel(timer_);
  timer_ = loop_.after(timeout_, [this, what] { leave(fmt::format("{} in {:.3g} seconds", what, timeout_)); });
}

void RelayClient::on_ready(bool, bool) {
  switch (step_) {
    case Step::kAsking: return receive_request();
    case Step::kVerdict: return send_verdict();
    case Step::kWaiting:
      if (!still_there()) leave("went away while it waited");
  }
}

void RelayClient::receive_request() {
  try {
    const IoStatus status = check_.receive(connection_.socket.descriptor());
    if (status == IoStatus::kClosed) return leave("went away before it said what it wants");
    if (status != IoStatus::kDone)
      return loop_.change(connection_.socket.descriptor(), true, status == IoStatus::kWantWrite);
  } catch (const Error& error) {
    return leave(error.what());
  }
  loop_.cancel(timer_);
  step_ = Step::kWaiting;
  loop_.change(connection_.socket.descriptor(), true, false);
  relay_.asked(*this);
}

// The client must not send anything before the verdict.
bool RelayClient::still_there() const {
  char byte = 0;
  const ssize_t got = recv(connection_.socket.descriptor(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

void RelayClient::decide(const admission::Verdict& verdict, Then then) {
  check_.decide(verdict);
  then_ = std::move(then);
  step_ = Step::kVerdict;
  limit_time("did not take its verdict");
  loop_.change(connection_.socket.descriptor(), false, true);
  send_verdict();
}

void RelayClient::send_verdict() {
  const IoStatus status = check_.send_verdict(connection_.socket.descriptor());
  if (status == IoStatus::kClosed) return leave("went away before its verdict");
  if (status != IoStatus::kDone) return;
  const Then then = std::move(then_);
  then(*this);
}

Socket RelayClient::take() {
  loop_.cancel(timer_);
  loop_.forget(connection_.socket.descriptor());
  return std::move(connection_.socket);
}

void RelayClient::leave(const std::string& why) {
  loop_.cancel(timer_);
  const std::string reason = why;
  relay_.gone(*this, reason);
}

// ---- decisions -----------------------------------------------------------------------------------------------------

namespace {

using admission::Want;

// A listener heard within so many seconds is alive: its name is refused to others.
constexpr double kAlive = 2.5 * kControlBeat;

// Limits unsent bytes in a socket, which delay all later ones.
void bound_unsent(const Socket& socket) {
  constexpr int kUnsent = 256 << 10;
  setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsent, sizeof(kUnsent));
}

}  // namespace

Relay::Relay(const RelaySettings& settings)
    : settings_((settings.check(), settings)), keys_(KeyRing::read(settings.key_files)) {
  settings_.socket.streams = 1;
  for (const auto& [name, endpoint] : settings_.destinations) destinations_[name] = HostAddresses(endpoint);
  for (int i = 0; i < thread_count(settings); ++i) {
    pumps_.push_back(std::make_unique<RelayPump>(fmt::format("relay-{}", i), settings.idle_timeout,
                                                 [this](const SessionReport& report) {
                                                   loop_.post([this, report] { ended(report); });
                                                 }));
  }
  acceptor_ = std::make_unique<Acceptor>(
      loop_, settings_.listen, settings_.socket,
      [this](Socket socket, const Address& peer) { take(std::move(socket), peer); },
      [](const std::string& reason) { log_once(LogLevel::kWarning, reason); });
}

// First no new sessions, then none at all; the loop sees the end of each before its own.
Relay::~Relay() {
  loop_.call([this] { stop(); });
  pumps_.clear();
}

void Relay::stop() {
  acceptor_.reset();
  end_calls([](const Call&) { return true; });
  answers_.clear();
  dials_.clear();
  strangers_ = {};
  clients_.clear();
  names_.clear();
}

RelayStatus Relay::status() {
  RelayStatus status;
  loop_.call([&] {
    status = {.sessions = static_cast<int>(sessions_.size()),
              .half_open = static_cast<int>(strangers_.size()),
              .names = static_cast<int>(names_.size()),
              .sessions_ever = sessions_ever_,
              .refused = refused_,
              .bytes = 0};
  });
  for (const auto& pump : pumps_) status.bytes += pump->bytes();
  return status;
}

void Relay::take(Socket socket, const Address& address) {
  const std::uint64_t number = next_++;
  RelayClient::Connection connection{number, std::move(socket), address};
  auto& client = clients_[number] =
      std::make_unique<RelayClient>(loop_, *this, keys_, std::move(connection), settings_.admission_timeout);
  strangers_.enter(address.network(), *client);
  if (strangers_.size() > static_cast<std::size_t>(settings_.half_open))
    gone(strangers_.surplus(), "dropped: too many have not yet said what they want");
}

void Relay::asked(RelayClient& client) {
  strangers_.leave(client);
  if (!client.admitted())
    return refuse(client, Code::kKey, "the relay has no such key, or the answer was not made with it");
  switch (client.request().want) {
    case Want::kConnect: return connect(client);
    case Want::kListen: return enroll(client);
    case Want::kAnswer: return answer(client);
  }
}

// A client that has gone cancels its pending connection.
void Relay::gone(RelayClient& client, const std::string& why) {
  ++refused_;
  refusals_.mention(fmt::format("{}: {}", client.address().text(), why));
  drop(client.number());
}

void Relay::drop(std::uint64_t client) {
  dials_.erase(client);
  end_calls([client](const Call& call) { return call.caller == client; });
  if (const auto answering = answers_.find(client); answering != answers_.end()) {
    const std::uint64_t caller = answering->second;
    answers_.erase(answering);
    refuse_caller(caller, "the listener's answer broke off");
  }
  if (const auto found = clients_.find(client); found != clients_.end()) {
    strangers_.leave(*found->second);
    clients_.erase(found);
  }
}

void Relay::end_calls(const std::function<bool(const Call&)>& which) {
  std::erase_if(calls_, [&](const auto& item) {
    if (!which(item.second)) return false;
    loop_.cancel(item.second.timer);
    return true;
  });
}

void Relay::refuse(RelayClient& client, Code code, const std::string& reason) {
  ++refused_;
  refusals_.mention(fmt::format("{} (key {}) refused: {}", client.address().text(), client.request().key_id, reason));
  client.decide({code, reason}, [this](RelayClient& told) { drop(told.number()); });
}

void Relay::refuse_caller(std::uint64_t caller, const std::string& reason) {
  const auto client = clients_.find(caller);
  if (client != clients_.end()) refuse(*client->second, Code::kUnreachable, reason);
}

bool Relay::room_for(RelayClient& client) {
  const std::string& key = client.request().key_id;
  const auto coming = dials_.size() + calls_.size() + answers_.size();
  if (sessions_.size() + coming >= static_cast<std::size_t>(settings_.sessions)) {
    refuse(client, Code::kBusy, fmt::format("the relay has its {} sessions already", settings_.sessions));
    return false;
  }
  const int most = sessions_per_key();
  if (most == 0) return true;
  const auto mine = [&key](const auto& one) { return one.second.key_id == key; };
  const auto waiting = [&key](const auto& one) {
    return one.second->request().key_id == key && one.second->request().want == Want::kConnect;
  };
  const auto count = std::count_if(sessions_.begin(), sessions_.end(), mine) +
                     std::count_if(clients_.begin(), clients_.end(), waiting);
  if (count <= most) return true;  // this one is among the waiting ones
  refuse(client, Code::kBusy, fmt::format("this key has its {} sessions already", most));
  return false;
}

// One of several keys leaves half of the sessions to the others.
int Relay::sessions_per_key() const {
  if (settings_.sessions_per_key > 0 || keys_.size() < 2) return settings_.sessions_per_key;
  return std::max(1, settings_.sessions / 2);
}

void Relay::connect(RelayClient& client) {
  if (!room_for(client)) return;
  const std::string& name = client.request().name;
  if (const auto found = destinations_.find(name); found != destinations_.end()) return dial(client, found->second);
  if (const auto found = names_.find(name); found != names_.end()) return call(client, found->second);
  refuse(client, Code::kNobody, fmt::format("nobody is there as '{}' now", name));
}

void Relay::dial(RelayClient& client, const HostAddresses& addresses) {
  PathSettings settings = settings_.socket;
  settings.connect_timeout = settings_.answer_timeout;
  const std::uint64_t caller = client.number();
  dials_[caller] = std::make_unique<Connector>(
      loop_, addresses.now(), settings, std::nullopt,
      [this, caller, name = client.request().name](Socket socket, const Address& peer) {
        const std::string to = fmt::format("'{}' at {}", name, peer.text());
        dials_.erase(caller);
        join(caller, std::move(socket), to);
      },
      [this, caller, addresses](Connector::Failure, const std::string& reason) {
        addresses.look_up_again();
        dials_.erase(caller);
        refuse_caller(caller, "the relay cannot reach it (" + reason + ")");
      });
}

void Relay::call(RelayClient& client, Registered& listener) {
  const std::string token = make_token();
  Call& call = calls_[token];
  call = {client.number(), client.request().name, listener.key_id, 0};
  call.timer = loop_.after(settings_.answer_timeout, [this, token] {
    const std::uint64_t caller = calls_.at(token).caller;
    calls_.erase(token);
    refuse_caller(caller, "the listener does not answer");
  });
  listener.control->call(token);
}

void Relay::answer(RelayClient& client) {
  const auto found = calls_.find(client.request().name);
  if (found == calls_.end() || found->second.key_id != client.request().key_id)
    return refuse(client, Code::kRefused, "no call waits for this answer");
  const Call call = found->second;
  loop_.cancel(call.timer);
  calls_.erase(found);
  answers_[client.number()] = call.caller;
  client.decide({}, [this, call](RelayClient& answering) {
    Socket socket = answering.take();
    const std::string to = fmt::format("'{}' (hidden) at {}", call.name, answering.address().text());
    answers_.erase(answering.number());
    drop(answering.number());
    join(call.caller, std::move(socket), to);
  });
}

// Joins a target to its caller, who may have gone.
void Relay::join(std::uint64_t caller, Socket target, const std::string& to) {
  const auto found = clients_.find(caller);
  if (found == clients_.end()) return;
  auto kept = std::make_shared<Socket>(std::move(target));
  found->second->decide({}, [this, kept, to](RelayClient& client) {
    const std::uint64_t number = client.number();
    const Session session{client.request().key_id, client.address().text(), to};
    Socket socket = client.take();
    drop(number);
    ++sessions_ever_;
    log(LogLevel::kInfo,
        fmt::format("session {} begins: {} (key {}) to {}", number, session.from, session.key_id, session.to));
    sessions_[number] = session;
    bound_unsent(socket);
    bound_unsent(*kept);
    pumps_[next_pump_++ % pumps_.size()]->add(number, std::move(socket), std::move(*kept));
  });
}

void Relay::ended(const SessionReport& report) {
  const auto found = sessions_.find(report.number);
  if (found == sessions_.end()) return;
  log(LogLevel::kInfo,
      fmt::format("session {} ends: {} to {}, {} there, {} back, {:.1f} s, {}", report.number, found->second.from,
                  found->second.to, amount(report.there), amount(report.back), report.seconds, report.how));
  sessions_.erase(found);
}

void Relay::enroll(RelayClient& client) {
  const std::string& name = client.request().name;
  if (destinations_.count(name) > 0)
    return refuse(client, Code::kRefused, fmt::format("'{}' is one of the relay's own destinations", name));
  if (const auto found = names_.find(name); found != names_.end()) {
    if (found->second.key_id != client.request().key_id)
      return refuse(client, Code::kRefused, fmt::format("'{}' is registered with another key", name));
    if (found->second.control->silent() < kAlive)
      return refuse(client, Code::kBusy,
                    fmt::format("'{}' is registered by {}, which is alive", name, found->second.from.text()));
  } else if (names_.size() >= static_cast<std::size_t>(settings_.names)) {
    return refuse(client, Code::kBusy, "the relay has all the names that it can");
  } else if (keys_.size() > 1 && 2 * names_of(client.request().key_id) >= settings_.names) {
    return refuse(client, Code::kBusy,
                  "this key has half of the names that the relay can have: the rest is for others");
  }
  client.decide({}, [this](RelayClient& told) { enrolled(told); });
}

int Relay::names_of(const std::string& key_id) const {
  return static_cast<int>(
      std::ranges::count_if(names_, [&](const auto& item) { return item.second.key_id == key_id; }));
}

void Relay::enrolled(RelayClient& client) {
  const std::string name = client.request().name, key = client.request().key_id;
  const Address from = client.address();
  Socket socket = client.take();
  drop(client.number());
  names_.erase(name);
  log(LogLevel::kInfo, fmt::format("'{}' registered by {} (key {})", name, from.text(), key));
  auto control = std::make_unique<ControlChannel>(loop_, std::move(socket), ControlChannel::Called(),
                                                  [this, name](const std::string& reason) { unenroll(name, reason); });
  names_[name] = {key, from, std::move(control)};
}

void Relay::unenroll(const std::string& name, const std::string& reason) {
  log(LogLevel::kInfo, fmt::format("'{}' is gone: {}", name, reason));
  names_.erase(name);
  std::vector<std::uint64_t> callers;
  end_calls([&](const Call& call) {
    if (call.name == name) callers.push_back(call.caller);
    return call.name == name;
  });
  for (const std::uint64_t caller : callers) refuse_caller(caller, "the listener went away");
}

}  // namespace maki::wan
