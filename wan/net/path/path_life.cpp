// Begin and end of a path.
#include <fmt/format.h>

#include <algorithm>

#include "wan/net/path/path_core.hpp"
#include "wan/net/quantity.hpp"

namespace maki::wan {
namespace {

constexpr double kFarewell = 2;  // seconds for the peer to answer a goodbye
constexpr double kMoment = 10;   // an attempt of at most this many seconds is one of many: only its error is reported

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
  if (end_) std::rethrow_exception(end_);
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
  for (EventLoop::Timer* timer : {&tick_, &acknowledgement_timer_, &pacing_timer_}) {
    loop_.cancel(*timer);
    *timer = 0;
  }
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

// First all is acknowledged, then both sides say goodbye, so that nothing is in flight to the other side at the end.
bool PathCore::close(double seconds) {
  if (loop_.in_loop()) {
    give_up(PathError(fmt::format("The path to {} was closed here", peer_)), true);
    return false;
  }
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  loop_.call([&] {
    const std::lock_guard lock(mutex_);
    drained_ = over_ || outbox_.empty();
  });
  std::unique_lock lock(mutex_);
  const bool drained = changed_.wait_until(lock, until, [&] { return drained_; }) && !end_;
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
    status.sent_again = outbox_.bytes_sent_again();
    status.reconnections = reconnections_;
  });
  return status;
}

}  // namespace maki::wan
