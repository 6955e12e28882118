#include "wan/net/relay/relay.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "wan/net/settings.hpp"

namespace maki::wan {

// ---- one direction -------------------------------------------------------------------------------------------------

namespace {

// Larger pipes save system calls but delay bytes: bench/NOTES.md has the measurement.
constexpr int kPipeSize = 512 << 10;
// Rounds before others in the loop have their turn.
constexpr int kTurns = 4;

}  // namespace

PipePool::Pipe PipePool::take() {
  if (!free_.empty()) {
    Pipe pipe = std::move(free_.back());
    free_.pop_back();
    return pipe;
  }
  int ends[2];
  if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) {
    const Error shortage("sessions wait: no pipe can be made", std::strerror(errno),
                         "raise the limit of open files (ulimit -n), or lower --sessions");
    log_once(LogLevel::kWarning, shortage.what());
    return {};
  }
  Pipe pipe{Socket(ends[0]), Socket(ends[1]), 0};
  // A user with many pipes gets small ones (fs.pipe-user-pages-soft): they work, only slower.
  fcntl(ends[1], F_SETPIPE_SZ, kPipeSize);
  const int size = fcntl(ends[1], F_GETPIPE_SZ);
  pipe.size = size > 0 ? static_cast<std::size_t>(size) : 4096;
  return pipe;
}

void PipePool::give(Pipe pipe) {
  if (free_.size() < kFree) free_.push_back(std::move(pipe));
}

SplicePipe::Step SplicePipe::fill(int source) {
  if (!pipe_.open()) pipe_ = pipes_.take();
  starved_ = !pipe_.open();
  if (starved_) return Step::kBlocked;
  for (;;) {
    const ssize_t got =
        splice(source, nullptr, pipe_.in.descriptor(), nullptr, pipe_.size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (got > 0) {
      held_ = static_cast<std::size_t>(got);
      return Step::kGone;
    }
    if (got == 0) return Step::kEnd;
    if (errno == EINTR) continue;
    return errno == EAGAIN ? Step::kBlocked : Step::kFailed;
  }
}

SplicePipe::Step SplicePipe::drain(int target) {
  while (held_ > 0) {
    const ssize_t sent =
        splice(pipe_.out.descriptor(), nullptr, target, nullptr, held_, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return Step::kBlocked;
    if (sent <= 0) return Step::kFailed;
    held_ -= static_cast<std::size_t>(sent);
    bytes_ += static_cast<std::uint64_t>(sent);
  }
  return Step::kGone;
}

void SplicePipe::release() {
  if (pipe_.open()) pipes_.give(std::move(pipe_));
  pipe_ = {};
}

SplicePipe::Result SplicePipe::move(int source, int target) {
  if (finished_) return Result::kFlowing;
  for (int turn = 0; turn < kTurns; ++turn) {
    if (held_ == 0) {
      const Step step = fill(source);
      if (step != Step::kGone) release();
      if (step == Step::kBlocked) return Result::kFlowing;
      if (step == Step::kFailed) return Result::kSourceFailed;
      if (step == Step::kEnd) {
        finished_ = true;
        return shutdown(target, SHUT_WR) == 0 ? Result::kFlowing : Result::kTargetFailed;
      }
    }
    const Step step = drain(target);
    if (step == Step::kBlocked) return Result::kFlowing;
    if (step == Step::kFailed) return Result::kTargetFailed;
  }
  release();
  return Result::kFlowing;
}

// ---- two sockets joined --------------------------------------------------------------------------------------------

namespace {

// Seconds without a byte after which the rest of a broken side's data is given up.
constexpr double kLinger = 10;
// Between attempts to get a pipe.
constexpr double kStarving = 0.1;

// Closing a socket with unread bytes resets the connection, and unsent data are lost.
void discard_incoming(int descriptor) {
  std::array<std::byte, 64 << 10> waste;
  for (int i = 0; i < 256 && recv(descriptor, waste.data(), waste.size(), MSG_DONTWAIT) > 0; ++i) {
  }
}

// POLLHUP: both directions have ended; POLLERR: by a break.
int hang_up_of(int descriptor) {
  pollfd one{descriptor, 0, 0};
  return poll(&one, 1, 0) > 0 ? one.revents & (POLLHUP | POLLERR) : 0;
}

}  // namespace

RelaySession::RelaySession(EventLoop& loop, PipePool& pipes, Socket caller, Socket target,
                           std::atomic<std::uint64_t>& total, Ended ended)
    : loop_(loop), total_(total), ended_(std::move(ended)), caller_(*this, "the caller", pipes, std::move(caller)),
      target_(*this, "the target", pipes, std::move(target)) {
  watch(caller_);
  watch(target_);
}

RelaySession::~RelaySession() {
  loop_.cancel(linger_);
  loop_.cancel(again_);
  forget(caller_);
  forget(target_);
}

void RelaySession::on_ready(End& end, bool readable, bool writable) {
  End& peer = other(end);
  if (writable && !flow(peer)) return;
  if (readable && end.onward.wants_source()) {
    if (!flow(end)) return;
  } else if (const int hang_up = readable ? hang_up_of(end.socket.descriptor()) : 0; hang_up != 0) {
    // Without a hang-up the event is stale: its bytes have been read since.
    // After an orderly end, with the way back still open, a hang-up can only be a break.
    if (end.onward.finished() && !peer.onward.finished()) {
      if (!fail(end)) return;
    } else {
      end.hung_up = true;
      if ((hang_up & POLLERR) != 0) linger();  // what came before an orderly end may wait for a slow reader
    }
  }
  watch(caller_);
  watch(target_);
}

// Moves bytes from `from` to the other end. False if that ended the session.
bool RelaySession::flow(End& from) {
  End& to = other(from);
  if (failed_ == &to) return true;  // nobody is there
  const std::uint64_t before = from.onward.bytes();
  const SplicePipe::Result result = from.onward.move(from.socket.descriptor(), to.socket.descriptor());
  if (from.onward.starved() && again_ == 0) again_ = loop_.after(kStarving, [this] { try_again(); });
  if (from.onward.bytes() != before) {
    total_.fetch_add(from.onward.bytes() - before, std::memory_order_relaxed);
    last_moved_ = Clock::now();
  }
  if (failed_ == &from && (result != SplicePipe::Result::kFlowing || from.onward.finished()))
    return end(std::string("reset by ") + from.name), false;
  if (result == SplicePipe::Result::kSourceFailed) return end(std::string("reset by ") + from.name), false;
  if (result == SplicePipe::Result::kTargetFailed) return fail(to);
  if (caller_.onward.finished() && target_.onward.finished()) return end("closed"), false;
  return true;
}

// `dead` can no longer be written to; data that it sent before are still to be read. False if that ended the session.
bool RelaySession::fail(End& dead) {
  if (failed_ != nullptr) return end("reset by both sides"), false;
  failed_ = &dead;
  if (dead.onward.finished()) return end(std::string("reset by ") + dead.name), false;
  linger();
  return flow(dead);
}

// Ends the session once nothing has moved for a while.
void RelaySession::linger() {
  if (linger_ != 0) return;
  linger_ = loop_.after(kLinger, [this] {
    linger_ = 0;
    if (seconds_since(last_moved_) < kLinger) return linger();
    end("reset, and the other side does not read");
  });
}

void RelaySession::try_again() {
  again_ = 0;
  for (End* one : {&caller_, &target_})
    if (one->onward.starved() && !flow(*one)) return;
  watch(caller_);
  watch(target_);
}

void RelaySession::watch(End& end) {
  const End& peer = other(end);
  const bool starved = end.onward.starved();
  const bool read = end.onward.wants_source() && !starved && failed_ != &peer;
  const bool write = peer.onward.wants_target() && failed_ != &end;
  const bool any = read || write;
  if (any) end.hung_up = false;
  // A hang-up would be reported again and again.
  if (end.hung_up || ((failed_ != nullptr || starved) && !any)) return forget(end);
  if (end.watched) return loop_.change(end.socket.descriptor(), read, write);
  loop_.watch(end.socket.descriptor(), read, write, end);
  end.watched = true;
}

void RelaySession::forget(End& end) {
  if (end.watched) loop_.forget(end.socket.descriptor());
  end.watched = false;
}

void RelaySession::end(const std::string& how) {
  for (End* one : {&caller_, &target_}) {
    forget(*one);
    discard_incoming(one->socket.descriptor());
    one->socket = Socket();
  }
  loop_.cancel(linger_);
  loop_.cancel(again_);
  const Ended ended = std::move(ended_);
  ended(how);
}

// ---- many of them --------------------------------------------------------------------------------------------------

RelayPump::RelayPump(const std::string& thread_name, double idle_timeout, Ended ended)
    : idle_timeout_(idle_timeout), ended_(std::move(ended)), loop_(thread_name) {
  loop_.post([this] { watch_idle(); });
}

RelayPump::~RelayPump() {
  loop_.call([this] {
    while (!sessions_.empty()) sessions_.begin()->second.session->end("the relay stopped");
  });
}

void RelayPump::add(std::uint64_t number, Socket caller, Socket target) {
  // A std::function has to be copyable, and sockets are not.
  auto pair = std::make_shared<std::pair<Socket, Socket>>(std::move(caller), std::move(target));
  loop_.post([this, number, pair] { start(number, std::move(pair->first), std::move(pair->second)); });
}

void RelayPump::start(std::uint64_t number, Socket caller, Socket target) {
  auto session = std::make_unique<RelaySession>(loop_, pipes_, std::move(caller), std::move(target), bytes_,
                                                [this, number](const std::string& how) { this->ended(number, how); });
  sessions_.emplace(number, Running{std::move(session), WallClock::now()});
}

void RelayPump::ended(std::uint64_t number, const std::string& how) {
  const auto found = sessions_.find(number);
  const RelaySession& session = *found->second.session;
  const SessionReport report{number, session.there(), session.back(), seconds_since(found->second.since), how};
  sessions_.erase(found);
  ended_(report);
}

void RelayPump::watch_idle() {
  loop_.after(std::clamp(idle_timeout_ / 10, 0.01, 10.0), [this] { watch_idle(); });
  for (auto next = sessions_.begin(); next != sessions_.end();) {
    RelaySession& session = *(next++)->second.session;
    if (seconds_since(session.last_moved()) > idle_timeout_) session.end("nothing moved for too long");
  }
}

}  // namespace maki::wan
