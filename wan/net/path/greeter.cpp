#include "wan/net/path/greeter.hpp"

#include <fmt/format.h>

#include <optional>

#include "wan/net/error.hpp"

namespace maki::wan {
namespace {

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
  timer_ = 0;
  if (watched_ >= 0) loop_.forget(watched_);
  watched_ = -1;
}

void Greeter::fail(const std::string& reason) {
  end();
  const auto gone = std::move(events_.gone);
  gone(*this, reason);
}

IoStatus Greeter::step() {
  switch (phase_) {
    case Phase::kSecure: return channel_->handshake();
    case Phase::kHello: return question_.progress(*channel_);
    default: return answer_.progress(*channel_);
  }
}

// Callbacks that may delete us are called outside of the try block.
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
    if (phase_ == Phase::kSecure) {
      phase_ = Phase::kHello;
    } else if (phase_ == Phase::kHello) {
      hello_ = decode_hello(question_.bytes());
      welcome_ = events_.decide(hello_, *channel_);
      answer_ = Outgoing(encode(welcome_));
      phase_ = Phase::kWelcome;
    } else {
      if (welcome_.answer != Answer::kWelcome) channel_->finish_writing();
      return true;
    }
  }
}

}  // namespace maki::wan
