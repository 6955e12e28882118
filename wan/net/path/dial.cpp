#include "wan/net/path/dial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "wan/net/byte_codec.hpp"
#include "wan/net/error.hpp"
#include "wan/net/relay/admission.hpp"
#include "wan/net/socket/event_loop.hpp"
#include "wan/net/socket/tcp.hpp"
#include "wan/net/wall_clock.hpp"

namespace maki::wan {
namespace {

// Connecting to one of several addresses: the next one starts when those before it failed or are slow, and the first
// that answers is taken (RFC 8305, in short). Runs in one loop.
class ConnectRace {
 public:
  // Exactly one of the two, never from within the constructor. Either may delete the race.
  using Won = std::function<void(Socket, const Address&)>;
  using Lost = std::function<void(const std::string& reasons)>;
  ConnectRace(EventLoop& loop, std::vector<Address> addresses, const PathSettings& settings, Won won, Lost lost);
  ~ConnectRace();
  ConnectRace(const ConnectRace&) = delete;
  ConnectRace& operator=(const ConnectRace&) = delete;

 private:
  struct Attempt final : Pollable {
    Attempt(ConnectRace& race, const Address& address) : race(race), address(address) {}
    void on_ready(bool, bool) override { race.answered(*this); }
    ConnectRace& race;
    Address address;
    Socket socket;
    EventLoop::Timer timeout = 0;
  };

  void start_next();
  void answered(Attempt& attempt);
  void fail(Attempt& attempt, const std::string& reason);
  void end(Attempt& attempt);
  void go_on();
  double time_left() const;  // of the first attempt
  void add_reason(const std::string& reason);

  EventLoop& loop_;
  std::vector<Address> addresses_;
  PathSettings settings_;
  Won won_;
  Lost lost_;
  std::size_t next_ = 0;  // attempts so far: the addresses in turn
  const EventLoop::Clock::time_point begun_ = EventLoop::Clock::now();
  std::list<Attempt> attempts_;
  EventLoop::Timer timer_ = 0;
  std::string reasons_;
};

// An address that has not answered after so many seconds gets company. More than most round trips.
constexpr double kHeadStart = 0.4;
// A system repeats its question after 1, 2, 4, ... s. Where the network was down meanwhile, asking afresh is sooner
// heard.
constexpr double kAskAgain = 2;

ConnectRace::ConnectRace(EventLoop& loop, std::vector<Address> addresses, const PathSettings& settings, Won won,
                         Lost lost)
    : loop_(loop), addresses_(std::move(addresses)), settings_(settings), won_(std::move(won)), lost_(std::move(lost)) {
  timer_ = loop_.after(0, [this] { start_next(); });
}

ConnectRace::~ConnectRace() {
  loop_.cancel(timer_);
  while (!attempts_.empty()) end(attempts_.front());
}

void ConnectRace::start_next() {
  timer_ = 0;
  if (!addresses_.empty()) {
    Attempt& attempt = attempts_.emplace_back(*this, addresses_[next_ % addresses_.size()]);
    const double patience = next_++ < addresses_.size() ? settings_.connect_timeout : time_left();
    try {
      attempt.socket = start_connect(attempt.address, settings_);
      loop_.watch(attempt.socket.descriptor(), false, true, attempt);
      attempt.timeout = loop_.after(patience, [this, &attempt] {
        fail(attempt, fmt::format("{}: no answer in {} s", attempt.address.text(), settings_.connect_timeout));
      });
    } catch (const Error& error) {
      add_reason(error.what());
      end(attempt);
    }
  }
  go_on();
}

void ConnectRace::answered(Attempt& attempt) {
  if (const int error = connect_error(attempt.socket.descriptor()); error != 0) {
    return fail(attempt, attempt.address.text() + ": " + std::strerror(error));
  }
  loop_.forget(attempt.socket.descriptor());
  const Won won = std::move(won_);
  const Address address = attempt.address;
  Socket socket = std::move(attempt.socket);
  won(std::move(socket), address);
}

void ConnectRace::fail(Attempt& attempt, const std::string& reason) {
  add_reason(reason);
  end(attempt);
  loop_.cancel(timer_);
  timer_ = 0;
  go_on();
}

void ConnectRace::end(Attempt& attempt) {
  loop_.cancel(attempt.timeout);
  if (attempt.socket.open()) loop_.forget(attempt.socket.descriptor());
  attempts_.remove_if([&](const Attempt& one) { return &one == &attempt; });
}

// What comes next: another address, at once when none is under way, or the news that all of them failed.
void ConnectRace::go_on() {
  if (next_ < addresses_.size()) {
    timer_ = loop_.after(attempts_.empty() ? 0 : kHeadStart, [this] { start_next(); });
  } else if (!attempts_.empty()) {
    if (time_left() > kAskAgain + 1) timer_ = loop_.after(kAskAgain, [this] { start_next(); });
  } else {
    const Lost lost = std::move(lost_);
    const std::string reasons = reasons_.empty() ? "it has no address" : reasons_;
    lost(reasons);
  }
}

double ConnectRace::time_left() const { return settings_.connect_timeout - seconds_since(begun_); }

void ConnectRace::add_reason(const std::string& reason) {
  if (reasons_.find(reason) == std::string::npos) reasons_ += (reasons_.empty() ? "" : "; ") + reason;
}

enum class Phase { kRelay, kSecure, kHello, kWelcome };  // in this order

const char* words(Phase phase) {
  switch (phase) {
    case Phase::kRelay: return "the relay's admission";
    case Phase::kSecure: return "the handshake";
    default: return "the greeting";
  }
}

struct Failure {
  DialFailure kind;
  std::string reason;
};

class Dialling final : public Dial, public Pollable {
 public:
  Dialling(EventLoop& loop, const DialPlan& plan, Done done, Failed failed)
      : loop_(loop), plan_(plan), done_(std::move(done)), failed_(std::move(failed)) {
    race_.emplace(
        loop_, plan_.addresses, plan_.settings,
        [this](Socket socket, const Address& peer) { connected(std::move(socket), peer); },
        [this](const std::string& reasons) { fail(DialFailure::kAgain, reasons); });
  }
  ~Dialling() override { end(); }
  void on_ready(bool, bool) override { progress(); }

 private:
  void connected(Socket socket, const Address& peer);
  void enter(Phase phase);
  void progress();
  IoStatus step();
  bool advance();
  void judge();
  DialFailure unless_it_stood() const;
  Hello hello() const;
  void fail(DialFailure failure, const std::string& reason);
  void end();
  std::string here() const { return peer_.text() + (plan_.relay.used() ? " (relay)" : ""); }

  EventLoop& loop_;
  DialPlan plan_;
  Done done_;
  Failed failed_;
  std::optional<ConnectRace> race_;
  Address peer_;
  Socket socket_;  // until the channel has it
  std::unique_ptr<RelayAdmission> admission_;
  std::unique_ptr<Channel> channel_;
  int watched_ = -1;
  EventLoop::Timer timer_ = 0;
  Phase phase_ = Phase::kSecure;
  Transfer hello_, answer_{kWelcomeBytes};
  Welcome welcome_;
};

void Dialling::connected(Socket socket, const Address& peer) {
  socket_ = std::move(socket);
  peer_ = peer;
  race_.reset();
  timer_ = loop_.after(plan_.settings.handshake_timeout, [this] {
    fail(DialFailure::kAgain,
         fmt::format("{}: {} was not over in {} s", here(), words(phase_), plan_.settings.handshake_timeout));
  });
  std::optional<std::string> problem;
  try {
    watched_ = socket_.descriptor();
    loop_.watch(watched_, false, true, *this);
    if (plan_.relay.used()) admission_ = RelayAdmission::connect_to(read_key(plan_.relay.key_file), plan_.relay.target);
    enter(plan_.relay.used() ? Phase::kRelay : Phase::kSecure);
  } catch (const Error& error) {
    problem = error.what();
  }
  if (problem) return fail(unless_it_stood(), *problem);
  progress();
}

void Dialling::enter(Phase phase) {
  phase_ = phase;
  if (phase == Phase::kSecure) {
    admission_.reset();
    channel_ = make_channel(plan_.security, std::move(socket_), Side::kConnecting, plan_.host);
  }
  if (phase == Phase::kHello) hello_ = Transfer(encode(hello()));
}

// Behind a relay may be anyone, wherever the relay itself is.
Hello Dialling::hello() const {
  Hello hello = plan_.hello;
  hello.party = plan_.security->party();
  hello.own_machine = !plan_.security->named() && !plan_.relay.used() && within_this_machine(watched_);
  return hello;
}

IoStatus Dialling::step() {
  switch (phase_) {
    case Phase::kRelay: return admission_->progress(watched_);
    case Phase::kSecure: return channel_->handshake();
    case Phase::kHello: return hello_.send_over(*channel_);
    default: return answer_.receive_over(*channel_);
  }
}

// Callbacks are called outside of the try block: what they throw is not ours, and we may be gone after them.
void Dialling::progress() {
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
    const bool refused = phase_ == Phase::kRelay && !admission_->try_again();
    failure = Failure{refused ? unless_it_stood() : DialFailure::kAgain, error.what()};
  }
  if (failure) return fail(failure->kind, here() + ": " + failure->reason);
  end();
  const Done done = std::move(done_);
  const Address peer = peer_;
  const Welcome welcome = welcome_;
  done(std::move(channel_), welcome, peer);
}

// A session that stood once was with the right peer: what came now was garbled on the way, or slipped in by someone
// who must not be able to end a path that way.
DialFailure Dialling::unless_it_stood() const {
  return plan_.hello.is_new() ? DialFailure::kFinal : DialFailure::kAgain;
}

// True when the peer has welcomed us.
bool Dialling::advance() {
  for (;;) {
    const IoStatus status = step();
    if (status == IoStatus::kClosed) {
      throw Failure{DialFailure::kAgain, fmt::format("closed by the other side during {}", words(phase_))};
    }
    if (status != IoStatus::kDone) {
      loop_.change(watched_, status == IoStatus::kWantRead, status == IoStatus::kWantWrite);
      return false;
    }
    if (phase_ == Phase::kWelcome) {
      judge();
      return true;
    }
    enter(static_cast<Phase>(static_cast<int>(phase_) + 1));
  }
}

void Dialling::judge() {
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

void Dialling::end() {
  loop_.cancel(timer_);
  timer_ = 0;
  if (watched_ >= 0) loop_.forget(watched_);
  watched_ = -1;
}

void Dialling::fail(DialFailure failure, const std::string& reason) {
  end();
  channel_.reset();
  socket_ = Socket();
  const Failed failed = std::move(failed_);
  failed(failure, reason);
}

}  // namespace

std::unique_ptr<Dial> Dial::start(EventLoop& loop, const DialPlan& plan, Done done, Failed failed) {
  return std::make_unique<Dialling>(loop, plan, std::move(done), std::move(failed));
}

}  // namespace maki::wan
