#include "wan/net/path/dial.hpp"

#include <fmt/format.h>

#include <utility>

#include "wan/net/byte_codec.hpp"
#include "wan/net/error.hpp"

namespace maki::wan {

Dial::Dial(EventLoop& loop, const DialPlan& plan, Done done, Failed failed)
    : loop_(loop), plan_(plan), done_(std::move(done)), failed_(std::move(failed)) {
  const RelayRoute& relay = plan_.relay;
  std::optional<RelayAdmission> admission;
  if (relay.used()) admission.emplace(read_key(relay.key_file), admission::Want::kConnect, relay.target);
  connector_.emplace(
      loop_, plan_.addresses.now(), plan_.settings, std::move(admission),
      [this](Socket socket, const Address& peer) { connected(std::move(socket), peer); },
      [this](Connector::Failure failure, const std::string& reason) {
        fail(failure == Connector::Failure::kAgain ? DialFailure::kAgain : unless_it_stood(), reason);
      });
}

void Dial::connected(Socket socket, const Address& peer) {
  peer_ = peer;
  connector_.reset();
  std::optional<Failure> failure;
  try {
    loop_.watch(socket.descriptor(), false, true, *this);
    watched_ = socket.descriptor();
    timer_ = loop_.after(plan_.settings.handshake_timeout, [this] {
      fail(DialFailure::kAgain,
           fmt::format("{}: {} was not over in {} s", peer_.text(), words(), plan_.settings.handshake_timeout));
    });
    channel_ = make_channel(plan_.security, std::move(socket), Side::kConnecting, plan_.host);
  } catch (const Error& error) {
    failure = Failure{watched_ < 0 ? DialFailure::kAgain : unless_it_stood(), error.what()};
  }
  if (failure) return fail(failure->kind, failure->reason);
  on_ready(false, true);
}

// The end of a relayed path may be any machine, wherever the relay itself is.
Hello Dial::hello() const {
  Hello hello = plan_.hello;
  hello.party = plan_.security->party();
  hello.own_machine = !plan_.security->named() && !plan_.relay.used() && within_this_machine(watched_);
  return hello;
}

IoStatus Dial::step() {
  switch (phase_) {
    case Phase::kSecure: return channel_->handshake();
    case Phase::kHello: return hello_.send_over(*channel_);
    default: return answer_.receive_over(*channel_);
  }
}

// Callbacks are called outside of the try block: their exceptions are not ours, and they may delete this object.
void Dial::on_ready(bool, bool) {
  std::optional<Failure> failure;
  try {
    if (!advance()) return;
  } catch (const Failure& failed) {
    failure = failed;
  } catch (const SecurityError& error) {
    failure = Failure{unless_it_stood(), error.what()};
  } catch (const ProtocolError& error) {
    failure = Failure{unless_it_stood(), error.what()};
  } catch (const Error& error) {
    failure = Failure{DialFailure::kAgain, error.what()};
  }
  if (failure) return fail(failure->kind, peer_.text() + ": " + failure->reason);
  end();
  const Done done = std::move(done_);
  const Welcome welcome = welcome_;
  done(std::move(channel_), welcome);
}

// An existing session was with the right peer. So the bad message was corrupted on the way, or injected by someone who
// must not be able to end a path by it.
DialFailure Dial::unless_it_stood() const { return plan_.hello.is_new() ? DialFailure::kFinal : DialFailure::kAgain; }

// True once the peer has welcomed us.
bool Dial::advance() {
  for (;;) {
    const IoStatus status = step();
    if (status == IoStatus::kClosed) {
      throw Failure{DialFailure::kAgain, fmt::format("closed by the other side during {}", words())};
    }
    if (status != IoStatus::kDone) {
      loop_.change(watched_, status == IoStatus::kWantRead, status == IoStatus::kWantWrite);
      return false;
    }
    if (phase_ == Phase::kWelcome) {
      judge();
      return true;
    }
    phase_ = static_cast<Phase>(static_cast<int>(phase_) + 1);
    if (phase_ == Phase::kHello) hello_ = Transfer(encode(hello()));
  }
}

void Dial::judge() {
  welcome_ = decode_welcome(block<kWelcomeBytes>(answer_.bytes()));
  const std::string why = welcome_.reason.empty() ? "" : " (" + welcome_.reason + ")";
  if (plan_.peer && welcome_.party != *plan_.peer)
    throw Failure{DialFailure::kAgain, "another answers than the one with whom the path stands" + why};
  if (welcome_.answer == Answer::kVersion || welcome_.version != kProtocolVersion) {
    throw Failure{
        DialFailure::kFinal,
        fmt::format("the peer speaks version {} of the protocol, this program version {}: use the same at both",
                    welcome_.version, kProtocolVersion)};
  }
  switch (welcome_.answer) {
    case Answer::kWelcome: break;
    case Answer::kUnknownSession:
      throw Failure{DialFailure::kFinal,
                    "the peer does not know this session: it was started anew, or has given the path up" + why};
    case Answer::kBusy: throw Failure{DialFailure::kAgain, "the peer has as many sessions as it takes" + why};
    case Answer::kStale: throw Failure{DialFailure::kAgain, "this stream has been connected since" + why};
    default: throw Failure{DialFailure::kFinal, "the peer refuses" + why};
  }
  if (!plan_.hello.is_new() && welcome_.session != plan_.hello.session)
    throw ProtocolError("the peer answered for another session");
}

void Dial::end() {
  loop_.cancel(timer_);
  loop_.forget(std::exchange(watched_, -1));
}

void Dial::fail(DialFailure failure, const std::string& reason) {
  end();
  channel_.reset();
  const Failed failed = std::move(failed_);
  failed(failure, reason);
}

}  // namespace maki::wan
