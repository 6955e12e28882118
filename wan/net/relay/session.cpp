#include "wan/net/relay/session.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "wan/net/error.hpp"

namespace maki::wan {
namespace {

// For what a broken side has left to reach the other.
constexpr double kLinger = 10;

// A socket closed with bytes unread is reset, and what it still had to send is lost.
void discard_incoming(int descriptor) {
  std::array<std::byte, 64 << 10> waste;
  for (int i = 0; i < 256 && recv(descriptor, waste.data(), waste.size(), MSG_DONTWAIT) > 0; ++i) {
  }
}

bool has_hung_up(int descriptor) {
  pollfd one{descriptor, 0, 0};
  return poll(&one, 1, 0) > 0 && (one.revents & (POLLHUP | POLLERR)) != 0;
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
  forget(caller_);
  forget(target_);
}

void RelaySession::on_ready(End& end, bool readable, bool writable) {
  End& peer = other(end);
  if (writable && !flow(peer)) return;
  if (readable && end.onward.wants_source()) {
    if (!flow(end)) return;
  } else if (readable &&
             has_hung_up(end.socket.descriptor())) {  // if not: the event is from before its bytes were taken
    // After an orderly end, with the way back still open, it can only be a break.
    if (!end.onward.finished() || peer.onward.finished())
      end.hung_up = true;
    else if (!fail(end))
      return;
  }
  watch(caller_);
  watch(target_);
}

// Moves bytes from `from` to the other end. False when that ended the session.
bool RelaySession::flow(End& from) {
  End& to = other(from);
  if (failed_ == &to) return true;  // nobody is there
  const std::uint64_t before = from.onward.bytes();
  SplicePipe::Result result = SplicePipe::Result::kFlowing;
  try {
    result = from.onward.move(from.socket.descriptor(), to.socket.descriptor());
  } catch (const Error& error) {
    return end(error.what()), false;
  }
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

// `dead` cannot be written to any more; what it sent before is still to be read. False when that ended the session.
bool RelaySession::fail(End& dead) {
  if (failed_ != nullptr) return end("reset by both sides"), false;
  failed_ = &dead;
  if (dead.onward.finished()) return end(std::string("reset by ") + dead.name), false;
  linger_ = loop_.after(kLinger, [this] { end("reset, and the other side does not read"); });
  return flow(dead);
}

void RelaySession::watch(End& end) {
  const End& peer = other(end);
  const bool read = end.onward.wants_source() && failed_ != &peer;
  const bool write = peer.onward.wants_target() && failed_ != &end;
  const bool any = read || write;
  if (any) end.hung_up = false;
  // A hang-up would be reported without end.
  if (end.hung_up || (failed_ != nullptr && !any)) return forget(end);
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
  const Ended ended = std::move(ended_);
  ended(how);
}

}  // namespace maki::wan
