#include "wan/net/listener.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "wan/net/path/greeter.hpp"
#include "wan/net/relay/connector.hpp"

namespace maki::wan {
namespace {

void check(const ListenerLimits& limits) {
  const auto at_least_one = [](const char* name, int value) {
    if (value < 1) throw Error(fmt::format("limit {} = {}", name, value), "it must be 1 or more");
  };
  at_least_one("half_open", limits.half_open);
  at_least_one("sessions", limits.sessions);
  at_least_one("sessions_per_peer", limits.sessions_per_peer);
  if (limits.streams_per_peer < 0) throw Error("limit streams_per_peer is below 0");
}

}  // namespace

Listener::Listener(const Endpoint& local, const Security& security, const PathSettings& settings,
                   const ListenerLimits& limits, const RelayRoute& relay, Context& context)
    : context_(context), loop_(context.handshakes()), settings_(settings), limits_(limits),
      sessions_(std::make_unique<SessionTable>(settings, limits)) {
  settings.check();
  check(limits);
  security_ = SecurityContext::make(security);
  const auto came = [this](Socket socket, const Address& peer) { greet(std::move(socket), peer); };
  if (relay.used()) {
    address_ = relay.relay;
    hidden_ = HiddenListener::start(loop_, relay, settings_, came);
    return;
  }
  acceptor_ = std::make_unique<Acceptor>(loop_, local, settings_, came, [this](const std::string& reason) {
    refusals_.mention(reason);
    if (!half_open_.empty()) drop_surplus();
  });
  const Address bound = acceptor_->address();
  address_ = {local.host.empty() ? "" : bound.host(), bound.port()};
}

Listener::~Listener() {
  loop_.call([this] {
    hidden_.reset();
    acceptor_.reset();
    half_open_.clear();
  });
  // Paths that nobody accepted end at once: in its own loop a path does not wait for its peer's goodbye.
  for (Waiting& waiting : accepted_) waiting.loop->call([&] { waiting.accepted.path = {}; });
}

void Listener::greet(Socket socket, const Address& peer) {
  try {
    auto channel = make_channel(security_, std::move(socket), Side::kListening);
    Greeter::Events events;
    events.known = [this](Greeter& greeter, const std::string& identity) { known(greeter, identity); };
    events.decide = [this, host = peer.host()](const Hello& hello, const Channel& greeted) {
      Welcome welcome = decide(hello, greeted, host);
      welcome.party = security_->party();
      return welcome;
    };
    events.welcomed = [this](Greeter& greeter, std::unique_ptr<Channel> greeted) {
      welcomed(greeter, std::move(greeted));
    };
    events.gone = [this](Greeter& greeter, const std::string& reason) { drop(greeter, reason); };
    half_open_.push_back(
        std::make_unique<Greeter>(loop_, std::move(channel), peer, settings_.handshake_timeout, std::move(events)));
    strangers_.enter(peer.network(), *half_open_.back());
    if (strangers_.size() > static_cast<std::size_t>(limits_.half_open)) drop_surplus();
  } catch (const Error& error) {
    refusals_.mention(fmt::format("{}: {}", peer.text(), error.what()));
  }
}

// From here on unauthenticated connections cannot displace it.
void Listener::known(Greeter& greeter, const std::string& identity) {
  strangers_.leave(greeter);
  known_.enter(identity, greeter);
  if (known_.size() > static_cast<std::size_t>(limits_.half_open))
    drop(known_.surplus(), "there are newer connections of the same peer that are being greeted");
}

Welcome Listener::decide(const Hello& hello, const Channel& channel, const std::string& host) {
  if (hello.version == kProtocolVersion && hello.party == security_->party() && !hello.own_machine) {
    return SessionTable::refuse(
        Answer::kRefused,
        "this call came back to its own caller, or both sides have one name (give one --own-name NAME)");
  }
  if (hello.is_new() && queue_full())
    return SessionTable::refuse(Answer::kBusy, "none of those that came was taken up");
  return sessions_->answer(hello, channel.identity(), host);
}

void Listener::remove(Greeter& greeter) {
  strangers_.leave(greeter);
  known_.leave(greeter);
  half_open_.remove_if([&](const auto& one) { return one.get() == &greeter; });
}

void Listener::drop(Greeter& greeter, const std::string& reason) {
  refusals_.mention(fmt::format("refused {}: {}", greeter.peer().text(), reason));
  if (greeter.decided() && greeter.hello().is_new()) sessions_->give_up(greeter.welcome().session);
  remove(greeter);
}

void Listener::drop_surplus() {
  Crowd<Greeter>& crowd = strangers_.size() > 0 ? strangers_ : known_;
  drop(crowd.surplus(),
       fmt::format("there are {} other connections that have not said who they are", crowd.size() - 1));
}

void Listener::welcomed(Greeter& greeter, std::unique_ptr<Channel> channel) {
  try {
    if (greeter.hello().is_new()) {
      make_path(greeter, std::move(channel));
    } else if (const auto core = sessions_->find(greeter.welcome().session)) {
      const Hello& hello = greeter.hello();
      core->attach(static_cast<int>(hello.stream), hello.epoch, std::move(channel));
    }
  } catch (const Error& error) {
    return drop(greeter, error.what());
  }
  remove(greeter);
}

void Listener::make_path(const Greeter& greeter, std::unique_ptr<Channel> channel) {
  const Hello& hello = greeter.hello();
  AcceptedSession session{greeter.welcome().session, channel->identity(), hello, greeter.peer(), settings_, {}};
  session.settings.streams = static_cast<int>(hello.streams);
  session.settings.unmatched_limit = greeter.welcome().unmatched_limit;
  session.promised = sessions_->take_promised(session.session);
  Accepted accepted{{}, hello.name, session.identity, greeter.peer().host()};
  EventLoop& loop = context_.next_loop();
  const auto core = PathCore::accept(loop, std::move(session));
  sessions_->settle(greeter.welcome().session, core);
  core->attach(static_cast<int>(hello.stream), hello.epoch, std::move(channel));
  std::lock_guard lock(mutex_);
  accepted.path = Path(core);
  accepted_.push_back({std::move(accepted), &loop});
  arrived_.notify_one();
}

bool Listener::queue_full() {
  std::lock_guard lock(mutex_);
  return accepted_.size() >= static_cast<std::size_t>(limits_.sessions);
}

std::optional<Accepted> Listener::next(std::optional<double> seconds) {
  std::unique_lock lock(mutex_);
  const auto there = [this] { return !accepted_.empty(); };
  if (!seconds) {
    arrived_.wait(lock, there);
  } else if (!arrived_.wait_for(lock, std::chrono::duration<double>(std::clamp(*seconds, 0.0, 1e8)), there)) {
    return std::nullopt;
  }
  std::optional<Accepted> first(std::move(accepted_.front().accepted));
  accepted_.pop_front();
  return first;
}

}  // namespace maki::wan
