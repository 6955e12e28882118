#include "wan/net/relay/control.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "wan/net/byte_codec.hpp"

namespace maki::wan {
namespace {

constexpr std::string_view kBeatWord = "MAKIbeat", kCallWord = "MAKIcall";
constexpr std::size_t kTokenAt = 8;
// A peer that reads nothing has missed so many calls that it is gone.
constexpr std::size_t kMaxOutgoing = 1024 * kControlBytes;

}  // namespace

bool valid_token(const std::string& token) { return is_hex(token, kTokenBytes); }

std::string make_token() {
  std::array<std::byte, kTokenBytes / 2> bits;
  random_bytes(bits);
  return to_hex(bits);
}

std::array<std::byte, kControlBytes> encode_control(const std::string& token) {
  ByteWriter out;
  out.put_characters(token.empty() ? kBeatWord : kCallWord);
  out.put_characters(std::string_view(token).substr(0, kTokenBytes));
  return out.block<kControlBytes>();
}

std::string decode_control(std::span<const std::byte, kControlBytes> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text == std::string(kBeatWord) + std::string(kControlBytes - kTokenAt, '\0')) return "";
  const std::string token = text.substr(kTokenAt, kTokenBytes);
  const std::string rest = text.substr(kTokenAt + kTokenBytes);
  if (!text.starts_with(kCallWord) || !valid_token(token) || rest.find_first_not_of('\0') != std::string::npos)
    throw ProtocolError("a relay's control connection carries what it cannot");
  return token;
}

ControlChannel::ControlChannel(EventLoop& loop, Socket socket, Called called, Lost lost)
    : loop_(loop), socket_(std::move(socket)), called_(std::move(called)), lost_(std::move(lost)) {
  loop_.watch(socket_.descriptor(), true, false, *this);
  beat_ = loop_.after(0, [this] { beat(); });
}

ControlChannel::~ControlChannel() {
  loop_.cancel(beat_);
  if (socket_.open()) loop_.forget(socket_.descriptor());
}

void ControlChannel::call(const std::string& token) {
  if (socket_.open()) queue(token);
}

double ControlChannel::silent() const {
  return std::chrono::duration<double>(EventLoop::Clock::now() - heard_).count();
}

void ControlChannel::beat() {
  if (silent() > kControlTimeout) return end(fmt::format("silent for {:.0f} seconds", kControlTimeout));
  beat_ = loop_.after(kControlBeat, [this] { beat(); });
  if (outgoing_.empty()) queue("");
}

void ControlChannel::queue(const std::string& token) {
  const auto bytes = encode_control(token);
  // Overfull: nobody reads; the next beat finds the silence, for this may be called by one who still needs us.
  if (outgoing_.size() < kMaxOutgoing) outgoing_.insert(outgoing_.end(), bytes.begin(), bytes.end());
  loop_.change(socket_.descriptor(), true, true);
}

void ControlChannel::on_ready(bool readable, bool writable) {
  if (readable && !receive()) return;
  if (writable) send();
}

void ControlChannel::send() {
  while (!outgoing_.empty()) {
    const ssize_t sent = ::send(socket_.descriptor(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent < 0) return end(std::strerror(errno));
    outgoing_.erase(outgoing_.begin(), outgoing_.begin() + sent);
  }
  loop_.change(socket_.descriptor(), true, false);
}

// False when this has ended.
bool ControlChannel::receive() {
  for (int frames = 0; frames < 64;) {  // then the others in this loop have their turn
    const ssize_t got =
        ::recv(socket_.descriptor(), incoming_.data() + received_, kControlBytes - received_, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (got <= 0) return end(got == 0 ? "closed by the other side" : std::strerror(errno)), false;
    received_ += static_cast<std::size_t>(got);
    if (received_ < kControlBytes) continue;
    received_ = 0;
    ++frames;
    heard_ = EventLoop::Clock::now();
    try {
      const std::string token = decode_control(incoming_);
      if (!token.empty() && called_) called_(token);
    } catch (const ProtocolError& error) {
      return end(error.what()), false;
    }
  }
  return true;
}

void ControlChannel::end(const std::string& reason) {
  loop_.cancel(beat_);
  loop_.forget(socket_.descriptor());
  socket_ = Socket();
  const Lost lost = std::move(lost_);
  const std::string why = reason;
  lost(why);
}

}  // namespace maki::wan
