#include "wan/net/path/greeter.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>

#include "wan/net/byte_codec.hpp"
#include "wan/net/error.hpp"
#include "wan/net/secure/key.hpp"

namespace maki::wan {
namespace {

// The first byte of TLS (a record of its handshake), and of a Hello.
constexpr std::byte kTlsByte{0x16};
const std::byte kHelloByte = encode(Hello{})[0];

std::string words(const Welcome& welcome) {
  const std::string why = welcome.reason.empty() ? "" : ": " + welcome.reason;
  switch (welcome.answer) {
    case Answer::kUnknownSession: return "asked for a session that is not there, or not its own" + why;
    case Answer::kBusy: return "there are as many sessions as the limit allows" + why;
    case Answer::kVersion: return "speaks another version of the protocol" + why;
    case Answer::kStale: return "came with an epoch of its stream that is over" + why;
    default: return "refused" + why;
  }
}

}  // namespace

Greeter::Greeter(EventLoop& loop, std::unique_ptr<Channel> channel, const Address& peer, double timeout, Events events)
    : loop_(loop), channel_(std::move(channel)), peer_(peer), events_(std::move(events)) {
  loop_.watch(channel_->descriptor(), true, false, *this);
  watched_ = channel_->descriptor();
  timer_ = loop_.after(timeout, [this, timeout] { fail(fmt::format("has not said who it is in {} s", timeout)); });
}

Greeter::~Greeter() { end(); }

void Greeter::end() {
  loop_.cancel(timer_);
  loop_.forget(std::exchange(watched_, -1));
}

void Greeter::fail(const std::string& reason) {
  end();
  const auto gone = std::move(events_.gone);
  gone(*this, reason);
}

IoStatus Greeter::step() {
  switch (phase_) {
    case Phase::kFirstByte: return look_at_first_byte();
    case Phase::kSecure: return channel_->handshake();
    case Phase::kHello: return question_.receive_over(*channel_);
    default: return answer_.send_over(*channel_);
  }
}

// Peeks: the byte stays for the next reader.
IoStatus Greeter::look_at_first_byte() {
  std::byte first{};
  const ssize_t got = ::recv(watched_, &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return IoStatus::kWantRead;
  if (got <= 0) return IoStatus::kClosed;
  if (!channel_->encrypted() && first == kTlsByte) {
    other_mode_ = "it comes with TLS (a key or certificates), and this side is insecure";
  } else if (channel_->encrypted() && first == kHelloByte) {
    other_mode_ = "it comes insecure, and this side asks for a key or certificates";
    Socket same(::dup(watched_));
    if (!same.open()) return IoStatus::kClosed;
    loop_.forget(watched_);
    channel_ = make_plain_channel(std::move(same));
    watched_ = channel_->descriptor();
    loop_.watch(watched_, true, false, *this);
  }
  return IoStatus::kDone;
}

// Callbacks that may delete this object are called outside of the try block.
void Greeter::on_ready(bool, bool) {
  std::optional<std::string> problem;
  try {
    if (!advance()) return;
    if (welcome_.answer != Answer::kWelcome) problem = words(welcome_);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  if (problem) return fail(*problem);
  end();
  const auto welcomed = std::move(events_.welcomed);
  welcomed(*this, std::move(channel_));
}

// True when the answer is sent.
bool Greeter::advance() {
  for (;;) {
    const IoStatus status = step();
    if (status == IoStatus::kClosed) throw Error("closed the connection before it was welcomed");
    if (status != IoStatus::kDone) {
      loop_.change(watched_, status == IoStatus::kWantRead, status == IoStatus::kWantWrite);
      return false;
    }
    if (phase_ == Phase::kWelcome) {
      if (welcome_.answer != Answer::kWelcome) channel_->finish_writing();
      return true;
    }
    if (phase_ == Phase::kSecure && channel_->encrypted() && events_.known) events_.known(*this, channel_->identity());
    if (phase_ == Phase::kHello) decide();
    phase_ = static_cast<Phase>(static_cast<int>(phase_) + 1);
  }
}

void Greeter::decide() {
  if (other_mode_.empty()) {
    hello_ = decode_hello(block<kHelloBytes>(question_.bytes()));
    welcome_ = events_.decide(hello_, *channel_);
  } else {
    welcome_.answer = Answer::kRefused;
    welcome_.reason = other_mode_;
    discard_rest();
  }
  answer_ = Transfer(encode(welcome_));
}

// Closing a socket with unread bytes would destroy the answer in transit.
void Greeter::discard_rest() {
  std::array<std::byte, 4096> waste;
  for (int i = 0; i < 16 && channel_->read(waste).bytes > 0; ++i) {
  }
}

// ---- sessions ------------------------------------------------------------------------------------------------------

SessionTable::SessionTable(const PathSettings& settings, const ListenerLimits& limits)
    : settings_(settings), limits_(limits) {
  HeldMemory::make_room(settings.unmatched_limit);
  if (limits_.streams_per_peer > 0) return;
  const std::uint64_t files = open_files(~std::uint64_t{0});  // each stream is one
  limits_.streams_per_peer = static_cast<int>(std::clamp<std::uint64_t>(files / 4, kMaxStreams, 1 << 20));
}

Welcome SessionTable::refuse(Answer answer, const std::string& reason) {
  Welcome welcome;
  welcome.answer = answer;
  welcome.reason = reason;
  return welcome;
}

Welcome SessionTable::accept(const SessionId& session, const Entry& entry) const {
  Welcome welcome;
  welcome.session = session;
  welcome.unmatched_limit = entry.unmatched_limit;
  welcome.message_limit = settings_.message_limit;
  welcome.patience = settings_.patience;
  return welcome;
}

Welcome SessionTable::answer(const Hello& hello, const std::string& identity, const std::string& host) {
  if (hello.version != kProtocolVersion) return refuse(Answer::kVersion);
  if (hello.is_new()) remove_ended();
  const Count there = count(identity, host);
  const char* each = identity.empty() ? "insecure address" : "key";
  if (there.sessions + (hello.is_new() ? 1 : 0) > limits_.sessions_per_peer)
    return refuse(Answer::kBusy, fmt::format("at most {} paths at once for one {}", limits_.sessions_per_peer, each));
  if (there.streams + (replaces(hello, identity) ? 0 : 1) > limits_.streams_per_peer)
    return refuse(Answer::kBusy, fmt::format("at most {} streams at once for one {}", limits_.streams_per_peer, each));
  return hello.is_new() ? answer_new(hello, identity, host, there) : answer_join(hello, identity);
}

// Counts of one peer, over all of its sessions.
SessionTable::Count SessionTable::count(const std::string& identity, const std::string& host) const {
  Count there;
  for (const auto& [session, entry] : entries_) {
    if (entry.identity != identity || (identity.empty() && entry.host != host)) continue;
    ++there.sessions;
    const auto core = entry.core.lock();
    there.streams += core ? core->open_streams() : entry.settled ? 0 : 1;
  }
  return there;
}

// Whether a connection replaces an earlier one of the same stream, not yet known to be lost: counted once.
bool SessionTable::replaces(const Hello& hello, const std::string& identity) const {
  const auto found = hello.is_new() ? entries_.end() : entries_.find(hello.session);
  const auto core = found != entries_.end() && found->second.identity == identity ? found->second.core.lock() : nullptr;
  return core && core->is_open(static_cast<int>(hello.stream));
}

Welcome SessionTable::answer_new(const Hello& hello, const std::string& identity, const std::string& host,
                                 const Count& there) {
  if (entries_.size() >= static_cast<std::size_t>(limits_.sessions)) return refuse(Answer::kBusy);
  if (hello.epoch == 0 || hello.stream >= hello.streams) return refuse(Answer::kRefused, "a stream that cannot be");
  Entry entry{.identity = identity, .host = host, .core = {}, .streams = hello.streams, .promised = {}};
  const auto memory = HeldMemory::of(identity.empty() ? host : identity);
  const int others = std::max(0, limits_.sessions_per_peer - there.sessions - 1);
  entry.unmatched_limit = memory->room_for_path(settings_.unmatched_limit, static_cast<std::uint64_t>(others));
  if (entry.unmatched_limit == 0 || !entry.promised.grow_to(entry.unmatched_limit, memory))
    return refuse(Answer::kBusy, fmt::format("{} paths of this {} have all the memory that there is for it",
                                             there.sessions, identity.empty() ? "insecure address" : "key"));
  SessionId session{};
  while (session == SessionId{} || entries_.contains(session)) random_bytes(session);
  return accept(session, entries_[session] = std::move(entry));
}

Welcome SessionTable::answer_join(const Hello& hello, const std::string& identity) {
  const auto found = entries_.find(hello.session);
  if (found == entries_.end()) return refuse(Answer::kUnknownSession);
  const Entry& entry = found->second;
  const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  const auto core = entry.core.lock();
  // The session of another peer is answered like an unknown one.
  if (!same_in_constant_time(bytes(entry.identity), bytes(identity)) || core == nullptr)
    return refuse(Answer::kUnknownSession);
  if (hello.stream >= entry.streams) return refuse(Answer::kRefused, "a stream that cannot be");
  const long epoch = core->epoch_of(static_cast<int>(hello.stream));
  if (epoch < 0) return refuse(Answer::kUnknownSession);
  if (static_cast<long>(hello.epoch) <= epoch) return refuse(Answer::kStale);
  return accept(hello.session, entry);
}

void SessionTable::settle(const SessionId& session, const std::shared_ptr<PathCore>& core) {
  Entry& entry = entries_[session];
  entry.core = core;
  entry.settled = true;
}

Holding SessionTable::take_promised(const SessionId& session) { return std::move(entries_[session].promised); }

void SessionTable::give_up(const SessionId& session) { entries_.erase(session); }

std::shared_ptr<PathCore> SessionTable::find(const SessionId& session) const {
  const auto found = entries_.find(session);
  return found == entries_.end() ? nullptr : found->second.core.lock();
}

// Only live paths count.
void SessionTable::remove_ended() {
  std::erase_if(entries_, [](const auto& item) {
    const auto& entry = item.second;
    if (!entry.settled) return false;
    const auto core = entry.core.lock();
    return core == nullptr || core->epoch_of(0) < 0;
  });
}

}  // namespace maki::wan
