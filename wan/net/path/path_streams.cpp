// Connecting and losing streams: dialing, reconnecting, retiring, heartbeats.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "wan/net/error.hpp"
#include "wan/net/path/path_core.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan {
namespace {

constexpr double kFirstPause = 0.1, kLongestPause = 2;  // seconds between attempts
constexpr int kDialsAtOnce = 128;
constexpr double kLongSend = 0.3;  // seconds
constexpr double kAwake = 2;       // seconds between two ticks of a loop that runs, at most
constexpr double kFirstWords =
    5;  // stream_timeouts for which a session is kept if its peer has sent nothing but its greeting

double seconds(EventLoop::Clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

int PathCore::streams_up() const {
  return static_cast<int>(std::count_if(slots_.begin(), slots_.end(),
                                        [](const Slot& slot) { return slot.stream && !slot.stream->ended(); }));
}

void PathCore::log_streams(const std::string& text) {
  if (text == last_logged_) return;
  last_logged_ = text;
  log(LogLevel::kInfo, text);
}

// The end of a short break is not logged, and neither is the next loss with the same text.
void PathCore::up_again(double after) {
  if (after < kLongestPause) return;
  last_logged_.clear();
  log(LogLevel::kInfo, fmt::format("the path to {} is up again, after {:.0f} s", peer_, after));
}

// ---- connecting side ----

void PathCore::dial(int number) {
  Slot& slot = slots_[static_cast<std::size_t>(number)];
  if (over_ || slot.stream || slot.dial) return;
  slot.retry = 0;
  if (dialing_ >= kDialsAtOnce) return;  // dial_missing() will retry
  ++dialing_;
  plan_.settings = settings_;
  DialPlan plan = plan_;
  plan.hello.session = session_;
  plan.hello.stream = static_cast<std::uint32_t>(number);
  plan.hello.epoch = ++slot.tried;
  plan.hello.streams = static_cast<std::uint32_t>(settings_.streams);
  plan.hello.unmatched_limit = settings_.unmatched_limit;
  plan.hello.message_limit = settings_.message_limit;
  plan.hello.patience = settings_.patience;
  try {
    slot.dial = std::make_unique<Dial>(
        loop_, plan,
        [this, number](std::unique_ptr<Channel> channel, const Welcome& welcome) {
          dialed(number, std::move(channel), welcome);
        },
        [this, number](DialFailure failure, const std::string& reason) { dial_failed(number, failure, reason); });
  } catch (const Error& error) {  // the relay's key is unavailable
    dial_failed(number, standing_ ? DialFailure::kAgain : DialFailure::kFinal, error.what());
  }
}

void PathCore::dialed(int number, std::unique_ptr<Channel> channel, const Welcome& welcome) {
  --dialing_;
  Slot& slot = slots_[static_cast<std::size_t>(number)];
  slot.dial.reset();
  if (!standing_) {
    identity_ = channel->identity();
    plan_.peer = welcome.party;
    session_stands(welcome.session, welcome.unmatched_limit, welcome.message_limit, welcome.patience);
  }
  count_connection(number, 1);
  adopt(number, slot.tried, std::move(channel));
  {
    const std::lock_guard lock(mutex_);
    connected_ = true;
  }
  changed_.notify_all();
  dial_missing();
}

void PathCore::dial_failed(int number, DialFailure failure, const std::string& reason) {
  --dialing_;
  slots_[static_cast<std::size_t>(number)].dial.reset();
  last_failure_ = reason;
  if (failure == DialFailure::kFinal) {
    give_up(PathError(fmt::format("{} refuses the path", peer_), reason, "", seconds(Clock::now() - last_heard_),
                      outbox_.bytes_outstanding(), true),
            false);
    return;
  }
  if (!standing_ && !quiet_) log_streams(fmt::format("waiting for {} ({})", peer_, reason));
  plan_.addresses.look_up_again();
  retry_later(number);
}

void PathCore::retry_later(int number) {
  Slot& slot = slots_[static_cast<std::size_t>(number)];
  if (over_ || slot.retry) return;
  slot.retry = loop_.after(slot.pause, [this, number] { dial(number); });
  slot.pause = std::clamp(2 * slot.pause, kFirstPause, kLongestPause);
}

void PathCore::dial_missing() {
  if (over_ || side_ != Side::kConnecting || !standing_ || farewell_) return;
  for (int i = 0; i < settings_.streams; ++i) {
    const Slot& slot = slots_[static_cast<std::size_t>(i)];
    if (!slot.stream && !slot.dial && !slot.retry) dial(i);
  }
}

// ---- both sides ----

void PathCore::attach(int number, unsigned epoch, std::unique_ptr<Channel> channel) {
  {
    const std::lock_guard lock(mutex_);
    epochs_[static_cast<std::size_t>(number)] = std::max(epochs_[static_cast<std::size_t>(number)], epoch);
  }
  count_connection(number, 1);  // at once: the listener counts connections before the loop has this one
  const auto shared = std::make_shared<std::unique_ptr<Channel>>(std::move(channel));
  loop_.post([self = shared_from_this(), number, epoch, shared] { self->adopt(number, epoch, std::move(*shared)); });
}

void PathCore::count_connection(int number, int change) {
  const int before = connections_[static_cast<std::size_t>(number)].fetch_add(change);
  if (before == 0 || before + change == 0) open_streams_ += change;
}

long PathCore::epoch_of(int number) const {
  const std::lock_guard lock(mutex_);
  if (end_) return -1;
  return number < kMaxStreams ? static_cast<long>(epochs_[static_cast<std::size_t>(number)]) : 0;
}

void PathCore::adopt(int number, unsigned epoch, std::unique_ptr<Channel> channel) {
  if (over_ || epoch <= slots_[static_cast<std::size_t>(number)].epoch) {  // it came too late
    count_connection(number, -1);
    return;
  }
  Slot& slot = slots_[static_cast<std::size_t>(number)];
  if (slot.stream) remove(number);
  if (epoch > 1) ++reconnections_;
  slot.epoch = epoch;
  set_options(*channel, settings_);
  if (const auto since = std::exchange(down_since_, {})) up_again(seconds(Clock::now() - *since));
  slot.stream = std::make_unique<Stream>(*this, number, std::move(channel));
  last_heard_ = Clock::now();
  acknowledgement_due_ = true;  // the last connection may have lost one
  slot.stream->start();
  if (slot.stream && !slot.stream->ended()) slot.stream->pump();
  note_up();
}

void PathCore::note_up() {
  const std::lock_guard lock(mutex_);
  up_ = streams_up() > 0;
  changed_.notify_all();
}

// Sets pacing, congestion control and other options as they are now. A stream is used even if the kernel refuses.
void PathCore::set_options(const Channel& channel, const PathSettings& settings) {
  try {
    apply_options(channel.descriptor(), settings);
    if (long_sends_) bound_pacing(channel.descriptor(), settings.pacing_rate);
  } catch (const Error& error) {
    log_once(LogLevel::kWarning, fmt::format("a stream to {} goes without an option: {}", peer_, error.what()));
  }
}

// After the first send that takes longer than any round trip on Earth (kLongSend), the kernel paces all streams.
void PathCore::pace_long_sends() {
  const double rate = settings_.pacing_rate;
  if (long_sends_ || rate <= 0 || static_cast<double>(outbox_.bytes_outstanding()) <= kLongSend * rate) return;
  long_sends_ = true;
  for (const Slot& slot : slots_)
    if (slot.stream) bound_pacing(slot.stream->channel().descriptor(), rate);
}

// Removes a stream from its slot; others retransmit its data.
void PathCore::remove(int number) {
  Slot& slot = slots_[static_cast<std::size_t>(number)];
  std::shared_ptr<Stream> stream = std::move(slot.stream);
  stream->stop();
  count_connection(number, -1);
  outbox_.stream_lost(number);
  note_up();
  acknowledgement_due_ = true;  // it may have been lost with the stream
  loop_.post([self = shared_from_this(), stream]() mutable { stream.reset(); });
}

void PathCore::ended(Stream& stream, const std::string& why) {
  if (over_) return;
  const int number = stream.number();
  double& wait = slots_[static_cast<std::size_t>(number)].pause;
  if (seconds(Clock::now() - stream.born) > kLongestPause) wait = 0;
  if (stream.sent + stream.received > 0) wait = std::min(wait, kFirstPause);  // it carried data: retry soon
  remove(number);
  if (farewell_) {
    if (streams_up() == 0) tear_down();
    return;
  }
  last_failure_ = why;
  if (streams_up() == 0) {
    down_since_ = Clock::now();
    log_streams(fmt::format("the path to {} is down: {}", peer_, why));
  }
  if (side_ == Side::kConnecting && standing_) retry_later(number);
  kick();
}

void PathCore::received_data(Stream& stream) {
  last_heard_ = stream.last_heard = Clock::now();
  spoken_ = true;
}

void PathCore::change(const PathSettings& settings) {
  settings.check();
  rethrow_if_over();
  loop_.call([&] {
    if (settings.patience != settings_.patience) patience_ = settings.patience;
    if (settings.pacing_rate != settings_.pacing_rate) {  // what was sent is no debt at the new rate
      loop_.cancel(std::exchange(pacing_timer_, 0));
      tokens_ = 0;
      tokens_at_ = Clock::now();
    }
    const PathSettings agreed = std::exchange(settings_, settings);
    settings_.streams = agreed.streams;
    settings_.unmatched_limit = agreed.unmatched_limit;
    settings_.message_limit = agreed.message_limit;
    PathSettings options = settings_;
    options.window = 0;  // applies from the next connection
    for (const Slot& slot : slots_)
      if (slot.stream && !slot.stream->ended()) set_options(slot.stream->channel(), options);
    kick();
  });
}

PathSettings PathCore::settings() {
  PathSettings settings;
  loop_.call([&] { settings = settings_; });
  return settings;
}

void PathCore::drop_stream(int number) {
  loop_.call([&] {
    if (number >= 0 && static_cast<std::size_t>(number) < slots_.size() &&
        slots_[static_cast<std::size_t>(number)].stream)
      slots_[static_cast<std::size_t>(number)].stream->break_off();
  });
}

// A pause of the loop that is longer than a moment is no silence of the peer: this process was stopped, or its whole
// job suspended, and what has come since waits to be read.
void PathCore::allow_for_sleep(Clock::time_point now) {
  const auto slept = now - std::exchange(ticked_, now);
  if (seconds(slept) < kAwake) return;
  last_heard_ = std::min(last_heard_ + slept, now);
  for (const Slot& slot : slots_)
    if (slot.stream) slot.stream->last_heard = std::min(slot.stream->last_heard + slept, now);
}

// Periodic checks, several times within the path's shortest timeout.
void PathCore::tick() {
  if (over_) return;
  const double pause =
      std::clamp(std::min({settings_.heartbeat, settings_.stream_timeout / 4, patience_ / 8}), 0.005, 0.25);
  tick_ = loop_.after(pause, [this] { tick(); });
  const auto now = Clock::now();
  allow_for_sleep(now);
  const double silent = seconds(now - last_heard_);
  // A session that was never used is not kept for a peer who may never come.
  if (silent > (spoken_ || side_ == Side::kConnecting ? patience_
                                                      : std::min(patience_, kFirstWords * settings_.stream_timeout))) {
    give_up(lost_error(silent), true);
    return;
  }
  check_streams(now);
  if (!over_) dial_missing();
}

void PathCore::check_streams(Clock::time_point now) {
  for (std::size_t i = 0; i < slots_.size() && !over_; ++i) {
    Stream* stream = slots_[i].stream.get();
    if (stream == nullptr || stream->ended()) continue;
    if (seconds(now - stream->last_heard) > settings_.stream_timeout) {
      stream->give_up(fmt::format("stream {} was silent for {:g} s", i, settings_.stream_timeout));
      continue;
    }
    if (seconds(now - stream->last_ping) < settings_.heartbeat) continue;
    stream->last_ping = now;
    const auto stamp = std::chrono::duration_cast<std::chrono::nanoseconds>(now - born_).count();
    stream->send_control({.type = FrameType::kPing, .sequence = static_cast<std::uint64_t>(stamp)});
    stream->pump();
  }
}

}  // namespace maki::wan
