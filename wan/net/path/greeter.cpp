#include "wan/net/path/greeter.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

#include "wan/net/byte_codec.hpp"
#include "wan/net/error.hpp"

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
    case Phase::kFirstByte: return look_at_first_byte();
    case Phase::kSecure: return channel_->handshake();
    case Phase::kHello: return question_.receive_over(*channel_);
    default: return answer_.send_over(*channel_);
  }
}

// Left where it is for whoever reads next.
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

// What is left unread when a socket closes takes the answer with it.
void Greeter::discard_rest() {
  std::array<std::byte, 4096> waste;
  for (int i = 0; i < 16 && channel_->read(waste).bytes > 0; ++i) {
  }
}

}  // namespace maki::wan
