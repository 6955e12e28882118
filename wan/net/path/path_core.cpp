// A path's begin and end; requests of its streams, pacing, and acknowledgements.
#include "wan/net/path/path_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "wan/net/settings.hpp"

namespace maki::wan {

// ---- begin and end -------------------------------------------------------------------------------------------------

namespace {

constexpr double kFarewell = 2;             // seconds for the peer to answer a goodbye
constexpr std::chrono::seconds kReturn{5};  // for a path that is down to come up again before it is closed
constexpr double kMoment = 10;  // an attempt of at most this many seconds is one of many: only its error is reported

}  // namespace

PathCore::PathCore(EventLoop& loop, const PathSettings& settings, Side side, std::string peer)
    : loop_(loop), settings_(settings), side_(side), peer_(std::move(peer)), patience_(settings.patience),
      inbox_(settings.unmatched_limit, settings.message_limit,
             [this](Tag tag, std::uint64_t index) {
               outbox_.add_control({.type = FrameType::kMatched, .tag = tag, .index = index});
             }),
      connections_(kMaxStreams), last_heard_(Clock::now()), tokens_at_(Clock::now()), born_(Clock::now()) {
  slots_.resize(static_cast<std::size_t>(settings.streams));
  epochs_.resize(kMaxStreams);
}

// Connecting side: waits until the first stream is up, or there is no hope.
void PathCore::connect(const DialPlan& plan, double within) {
  const auto self = shared_from_this();
  loop_.call([&] {
    self_ = self;
    plan_ = plan;
    quiet_ = within > 0 && within <= kMoment;
    tick();
    dial(0);
  });
  std::unique_lock lock(mutex_);
  const auto settled = [&] { return connected_ || end_; };
  if (within <= 0) {
    changed_.wait(lock, settled);
  } else if (!changed_.wait_for(lock, std::chrono::duration<double>(within), settled)) {
    lock.unlock();
    loop_.call([&] {
      if (!standing_)
        give_up(PathError(fmt::format("No path to {} within {:g} s", peer_, within), last_failure_, "", within), false);
    });
    lock.lock();
    changed_.wait(lock, settled);
  }
  if (!connected_) std::rethrow_exception(end_);  // a path that stood and has ended says so in its next call
}

std::shared_ptr<PathCore> PathCore::accept(EventLoop& loop, AcceptedSession session) {
  const Hello& hello = session.hello;
  const std::string peer = hello.name.empty() ? session.peer.text() : hello.name + " at " + session.peer.text();
  auto core = std::make_shared<PathCore>(loop, session.settings, Side::kListening, peer);
  core->inbox_.set_promised(std::move(session.promised));
  core->memory_ = HeldMemory::of(session.identity.empty() ? session.peer.host() : session.identity);
  loop.post([core, id = session.session, identity = session.identity, hello] {
    core->self_ = core;
    core->identity_ = identity;
    core->session_stands(id, hello.unmatched_limit, hello.message_limit, hello.patience);
    core->tick();
  });
  return core;
}

void PathCore::session_stands(const SessionId& session, std::uint64_t peer_unmatched, std::uint64_t peer_message,
                              double peer_patience) {
  session_ = session;
  standing_ = true;
  inbox_.set_memory(memory_);
  if (peer_patience > 0) patience_ = std::min(patience_, peer_patience);
  outbox_.set_unmatched_limit(peer_unmatched);
  peer_message_limit_ = peer_message;
  last_heard_ = Clock::now();
}

void PathCore::rethrow_if_over() const {
  const std::lock_guard lock(mutex_);
  if (end_) std::rethrow_exception(end_);
}

PathError PathCore::lost_error(double silent) const {
  const std::string outstanding = fmt::format("{} bytes were not yet acknowledged", outbox_.bytes_outstanding());
  const std::string why = last_failure_.empty() ? "" : "; last attempt: " + last_failure_;
  return PathError(fmt::format("The path to {} is lost: nothing was heard for {:.1f} s", peer_, silent),
                   fmt::format("patience is {:g} s; {}{}", patience_, outstanding, why),
                   "look at the network and at the peer, or raise 'patience'", silent, outbox_.bytes_outstanding());
}

// Ends the path; all waiting calls get the reason.
void PathCore::give_up(const PathError& error, bool tell_peer) {
  if (over_) return;
  const auto why = std::make_exception_ptr(error);
  {
    const std::lock_guard lock(mutex_);
    if (!end_) end_ = why;
  }
  if (tell_peer) send_goodbye(error.what());
  tear_down();
}

void PathCore::send_goodbye(const std::string& reason) {
  std::vector<std::byte> words(std::min<std::size_t>(reason.size(), 500));
  std::copy_n(reinterpret_cast<const std::byte*>(reason.data()), words.size(), words.begin());
  for (Slot& slot : slots_) {
    if (!slot.stream || slot.stream->ended()) continue;
    slot.stream->send_control({.type = FrameType::kGoodbye}, words);
    slot.stream->pump();
  }
}

// Streams are stopped first, so that no buffer of a caller is touched once its operation has failed.
void PathCore::tear_down() {
  if (over_) return;
  over_ = true;
  for (const EventLoop::Timer timer : {tick_, acknowledgement_timer_, pacing_timer_}) loop_.cancel(timer);
  std::vector<std::unique_ptr<Stream>> streams;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    loop_.cancel(slot.retry);
    slot.retry = 0;
    slot.dial.reset();
    if (!slot.stream) continue;
    if (!slot.stream->ended()) slot.stream->finish();
    count_connection(static_cast<int>(i), -1);
    streams.push_back(std::move(slot.stream));
  }
  std::exception_ptr why;
  {
    const std::lock_guard lock(mutex_);
    if (!end_) end_ = std::make_exception_ptr(PathError(fmt::format("The path to {} is closed", peer_)));
    why = end_;
  }
  // One of the streams may be the caller: they are deleted after its call.
  const auto shared = std::make_shared<std::vector<std::unique_ptr<Stream>>>(std::move(streams));
  loop_.post([self = std::move(self_), shared] { shared->clear(); });
  outbox_.fail_all(why);
  inbox_.close(why);
  {
    const std::lock_guard lock(mutex_);
    drained_ = gone_ = true;
  }
  changed_.notify_all();
}

// First all is acknowledged, then both sides say goodbye, so that nothing is in flight to the other side at the end. A
// path that is down may owe the peer an acknowledgement: it has some time to come up again.
bool PathCore::close(double seconds) {
  if (loop_.in_loop()) {
    give_up(PathError(fmt::format("The path to {} was closed here", peer_)), true);
    return false;
  }
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  bool owes = false;
  loop_.call([&] {
    owes = received_.all_up_to() > 0 || !received_.ranges().empty();
    const std::lock_guard lock(mutex_);
    drained_ = over_ || outbox_.empty();
  });
  std::unique_lock lock(mutex_);
  const bool drained = changed_.wait_until(lock, until, [&] { return drained_; }) && !end_;
  if (owes) changed_.wait_until(lock, std::min(until, Clock::now() + kReturn), [&] { return up_ || gone_; });
  lock.unlock();
  loop_.call([&] {
    if (over_) return;
    acknowledgement_due_ = farewell_ = true;
    send_goodbye("");
    if (streams_up() == 0 || peer_said_goodbye_)
      tear_down();
    else
      loop_.after(kFarewell, [self = shared_from_this()] { self->tear_down(); });
  });
  lock.lock();
  changed_.wait(lock, [&] { return gone_; });
  return drained;
}

PathStatus PathCore::status() {
  PathStatus status;
  loop_.call([&] {
    status.peer = peer_;
    status.identity = identity_;
    status.streams_up = over_ ? 0 : streams_up();
    status.up = status.streams_up > 0;
    status.streams = settings_.streams;
    if (!round_trips_.empty()) status.round_trip = *std::min_element(round_trips_.begin(), round_trips_.end());
    status.silent = seconds_since(last_heard_);
    status.sent = sent_;
    status.received = received_bytes_;
    status.outstanding = outbox_.bytes_outstanding();
    status.reconnections = reconnections_;
  });
  return status;
}

namespace {

constexpr std::size_t kCopiedMessage = 64 << 10;      // a send up to this size is copied, and done at once
constexpr std::size_t kCopiedAtMost = 64 << 20;       // unless so many bytes of copies are not acknowledged
constexpr double kAcknowledgeWithin = 0.005;          // seconds
constexpr std::uint64_t kAcknowledgeEvery = 8 << 20;  // bytes
constexpr double kPacingBurst = 0.01;  // seconds of the rate that may be sent at once, to make up for late timers
constexpr std::size_t kRoundTrips = 64;
constexpr std::size_t kLongestReason = 1000;  // of a goodbye

}  // namespace

// ---- callers ----

Request PathCore::send(Tag tag, std::span<const std::byte> message, std::unique_ptr<std::byte[]> owned) {
  rethrow_if_over();
  if (message.size() > peer_message_limit_)
    throw Error(fmt::format("A message of {} bytes is too long for {}", message.size(), peer_),
                fmt::format("its limit is {} bytes", peer_message_limit_.load()),
                "send it in parts, or raise 'message_limit' there");
  auto operation = std::make_shared<Operation>();
  auto out = std::make_shared<OutMessage>();
  out->tag = tag;
  out->data = message;
  out->owned = std::move(owned);
  out->operation = operation;
  if (!out->owned && message.size() <= kCopiedMessage) {
    out->owned.reset(new std::byte[std::max<std::size_t>(message.size(), 1)]);
    if (!message.empty()) std::memcpy(out->owned.get(), message.data(), message.size());
    out->data = {out->owned.get(), message.size()};
    out->copied = message.size();
    if (outbox_.count_copy(message.size()) <= kCopiedAtMost &&
        out->holding.grow_to(message.size() + kUnmatchedCost, memory_)) {
      out->operation.reset();
      operation->finish(message.size());
    }
  }
  loop_.post([self = shared_from_this(), out = std::move(out)] {
    if (self->over_) {
      if (out->operation) out->operation->fail(self->end_);
      return;
    }
    self->sent_ += out->data.size();
    self->outbox_.add(out);
    self->pace_long_sends();
    self->kick();
  });
  return Request(operation);
}

Request PathCore::receive(Tag tag, Receive receive) {
  auto operation = std::make_shared<Operation>();
  receive.operation = operation;
  loop_.post([self = shared_from_this(), tag, receive = std::move(receive)] {
    self->inbox_.post(tag, receive);
    if (!self->over_) self->kick();
  });
  return Request(operation);
}

// ---- out ----

// Wakes idle streams in turn, until there is nothing left to send.
void PathCore::kick() {
  const std::size_t count = slots_.size();
  const std::size_t first = turn_;
  for (std::size_t i = 0; i < count && !over_; ++i) {
    if (!acknowledgement_due_ && (pacing_timer_ || !outbox_.waiting())) break;
    Stream* stream = slots_[(first + i) % count].stream.get();
    if (stream == nullptr || !stream->idle()) continue;
    const std::uint64_t before = stream->written;
    stream->pump();
    // A stream that pacing held back is asked first next time.
    if (!over_ && stream->written > before) turn_ = (first + i + 1) % count;
  }
}

bool PathCore::pacing_allows(std::size_t bytes) {
  if (settings_.pacing_rate <= 0) return true;
  const auto now = Clock::now();
  const double burst = std::max(kPacingBurst * settings_.pacing_rate, static_cast<double>(settings_.send_chunk));
  tokens_ += settings_.pacing_rate * std::chrono::duration<double>(now - tokens_at_).count();
  tokens_ = std::min(tokens_, burst);
  tokens_at_ = now;
  if (tokens_ > 0) {
    tokens_ -= static_cast<double>(bytes);
    return true;
  }
  if (!pacing_timer_)
    pacing_timer_ = loop_.after(-tokens_ / settings_.pacing_rate + 0.0001, [this] {
      pacing_timer_ = 0;
      kick();
    });
  return false;
}

std::shared_ptr<Chunk> PathCore::next_chunk(Stream& stream) {
  if (over_ || !standing_) return nullptr;
  if (!pacing_allows(0)) return nullptr;
  auto chunk = outbox_.next(stream.number(), settings_.send_chunk, std::max(1, streams_up()));
  if (chunk && settings_.pacing_rate > 0) tokens_ -= static_cast<double>(chunk->frame.length + kFrameBytes);
  return chunk;
}

// ---- in ----

// A peer that exceeds its memory limit loses this path, and is told why; its other paths and other peers go on.
template <class Work>
auto PathCore::within_memory(Work work) {
  try {
    return work();
  } catch (const HeldMemoryError& error) {
    give_up(PathError(fmt::format("The path to {} was given up", peer_), error.what()), true);
    throw;
  }
}

// False for a duplicate.
bool PathCore::note_received(std::uint64_t sequence) {
  return within_memory([&] {
    if (!received_holding_.grow_to(beyond_own(received_.ranges().size() * kRangeCost), memory_, kRangeStep))
      throw HeldMemoryError("The numbers of what comes in have too many gaps");
    return received_.add(sequence);
  });
}

std::unique_ptr<Landing> PathCore::begin_data(const Frame& frame) {
  return within_memory([&] { return inbox_.begin(frame); });
}

void PathCore::finish_data(const Frame& frame, std::unique_ptr<Landing> landing) {
  note_received(frame.sequence);
  received_bytes_ += frame.length;
  unacknowledged_ += frame.length;
  const bool whole = within_memory([&] { return inbox_.finish(std::move(landing)); });
  acknowledge_soon(whole || unacknowledged_ >= kAcknowledgeEvery);
}

void PathCore::acknowledge_soon(bool at_once) {
  if (at_once) {
    if (acknowledgement_due_) return;
    acknowledgement_due_ = true;
    // After all data already read, so that one acknowledgement covers them.
    loop_.post([self = shared_from_this()] {
      if (!self->over_) self->kick();
    });
  } else if (!acknowledgement_timer_ && !acknowledgement_due_) {
    acknowledgement_timer_ = loop_.after(kAcknowledgeWithin, [this] {
      acknowledgement_timer_ = 0;
      acknowledgement_due_ = true;
      kick();
    });
  }
}

bool PathCore::take_acknowledgement(std::vector<std::byte>& payload) {
  if (!acknowledgement_due_) return false;
  acknowledgement_due_ = false;
  unacknowledged_ = 0;
  loop_.cancel(acknowledgement_timer_);
  acknowledgement_timer_ = 0;
  payload = received_.encode(kMaxControl);
  return true;
}

void PathCore::take_pong(const Frame& frame) {
  const double trip = seconds_since(born_) - static_cast<double>(frame.sequence) * 1e-9;
  if (trip < 0) throw ProtocolError("The peer answers a sign of life that was never given");
  if (round_trips_.size() < kRoundTrips)
    round_trips_.push_back(trip);
  else
    round_trips_[pings_ % kRoundTrips] = trip;
  ++pings_;
}

void PathCore::control(Stream& stream, const Frame& frame, std::span<const std::byte> payload) {
  if (frame.sequenced() && !note_received(frame.sequence)) return;  // a duplicate
  switch (frame.type) {
    case FrameType::kMatched:
      outbox_.matched(frame.tag, frame.index);
      acknowledge_soon(false);
      kick();
      break;
    case FrameType::kAck: {
      outbox_.acknowledge(ReceivedSet::decode(payload));
      if (outbox_.empty()) {
        const std::lock_guard lock(mutex_);
        drained_ = true;
        changed_.notify_all();
      }
      break;
    }
    case FrameType::kPing:
      stream.send_control({.type = FrameType::kPong, .sequence = frame.sequence});
      stream.pump();
      break;
    case FrameType::kPong: take_pong(frame); break;
    case FrameType::kGoodbye: goodbye_came(payload); break;
    case FrameType::kData: break;
  }
}

// The peer ends the path: in good order if there is no text, else for the reason given.
void PathCore::goodbye_came(std::span<const std::byte> words) {
  if (over_ || peer_said_goodbye_) return;
  peer_said_goodbye_ = true;
  if (farewell_) {
    tear_down();
    return;
  }
  const std::string reason(reinterpret_cast<const char*>(words.data()), std::min(words.size(), kLongestReason));
  give_up(PathError(fmt::format("The path was closed by {}", peer_), reason, "", 0, outbox_.bytes_outstanding()), true);
}

}  // namespace maki::wan
