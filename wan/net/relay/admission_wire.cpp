#include "wan/net/relay/admission_wire.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "wan/net/byte_codec.hpp"

namespace maki::wan::admission {
namespace {

// Each message begins with 8 bytes of magic and two words; request and verdict end with their code.
constexpr std::size_t kMagicBytes = 8, kBody = 16, kCodeBytes = 32;
constexpr std::size_t kNameBytes = kMaxName + 1, kReasonBytes = kMaxReason + 1;
static_assert(kBody + sizeof(Nonce) == kChallengeBytes);
static_assert(kBody + kNameBytes + kKeyIdBytes + sizeof(Nonce) + kCodeBytes == kRequestBytes);
static_assert(kBody + kReasonBytes + kCodeBytes == kVerdictBytes);

constexpr std::string_view kChallengeMagic = "MAKIrly?", kRequestMagic = "MAKIrly>", kVerdictMagic = "MAKIrly!";
constexpr std::string_view kRequestLabel = "maki relay request 1", kVerdictLabel = "maki relay verdict 1";

ByteWriter begun(std::string_view magic, std::uint32_t word) {
  ByteWriter out;
  out.put_characters(magic);
  out.put(kVersion);
  out.put(word);
  return out;
}

bool printable(char c, char least) { return c >= least && c <= '~'; }

// A text that ends at the first zero; all after it is zero too, so that there is one way to write it.
std::string get_text(ByteReader& in, std::size_t room, char least) {
  std::string text = in.characters(room);
  const std::size_t end = std::min(text.find('\0'), text.size());
  const bool ends = end < text.size() && std::all_of(text.begin() + end, text.end(), [](char c) { return c == '\0'; });
  text.resize(end);
  if (!ends || !std::all_of(text.begin(), text.end(), [least](char c) { return printable(c, least); }))
    in.fail("a text in it is not printable");
  return text;
}

// What follows its magic.
ByteReader opened(std::span<const std::byte> bytes, std::string_view magic, const char* what) {
  ByteReader in(bytes, "a relay's greeting", "the relay's greeting is damaged");
  if (in.characters(kMagicBytes) != magic)
    throw ProtocolError(what, "its first bytes are not those of a relay's greeting", "check address and port");
  return in;
}

bool valid_key_id(const std::string& id) { return is_hex(id, kKeyIdBytes); }

// HMAC of the parts, one after the other. All but the label have fixed sizes, so no two lists of parts give the same text.
Digest code_of(const Key& key, std::initializer_list<std::span<const std::byte>> parts) {
  std::vector<std::byte> text;
  for (const auto& part : parts) text.insert(text.end(), part.begin(), part.end());
  return hmac_sha256(key.secret, text);
}

std::span<const std::byte> label(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

template <std::size_t size>
std::span<const std::byte> without_code(const std::array<std::byte, size>& bytes) {
  return std::span(bytes).first(size - kCodeBytes);
}

template <std::size_t size>
std::span<const std::byte> code_in(const std::array<std::byte, size>& bytes) {
  return std::span(bytes).last(kCodeBytes);
}

Digest request_code(const Key& key, const RequestBytes& request, const Nonce& nonce) {
  return code_of(key, {label(kRequestLabel), nonce, without_code(request)});
}

Digest verdict_code(const Key& key, const VerdictBytes& verdict, const RequestBytes& request, const Nonce& nonce) {
  return code_of(key, {label(kVerdictLabel), nonce, request, without_code(verdict)});
}

bool retry_later(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

bool valid_name(const std::string& name) {
  return !name.empty() && name.size() <= kMaxName &&
         std::all_of(name.begin(), name.end(), [](char c) { return printable(c, '!'); });
}

ChallengeBytes encode(const Challenge& challenge) {
  ByteWriter out;
  out.put_characters(kChallengeMagic);
  out.put(challenge.version);
  out.put(std::uint32_t{0});
  out.put_bytes(challenge.nonce);
  return out.block<kChallengeBytes>();
}

RequestBytes encode(const Request& request, const Nonce& relay_nonce, const Key& key) {
  if (!valid_name(request.name))
    throw Error("'" + request.name + "' cannot be a name at a relay", "",
                "use 1 to 63 printable characters without blanks");
  if (!valid_key_id(request.key_id)) throw Error("the relay's key has no id of 16 hexadecimal digits", request.key_id);
  ByteWriter out = begun(kRequestMagic, static_cast<std::uint32_t>(request.want));
  out.put_characters(request.name);
  out.fill(kBody + kNameBytes);
  out.put_characters(request.key_id);
  out.put_bytes(request.nonce);
  RequestBytes bytes = out.block<kRequestBytes>();
  const Digest code = request_code(key, bytes, relay_nonce);
  std::copy(code.begin(), code.end(), bytes.end() - kCodeBytes);
  return bytes;
}

VerdictBytes encode(const Verdict& verdict, const RequestBytes& request, const Nonce& relay_nonce, const Key* key) {
  ByteWriter out = begun(kVerdictMagic, static_cast<std::uint32_t>(verdict.code));
  std::string reason = verdict.reason.substr(0, kMaxReason);
  std::replace_if(
      reason.begin(), reason.end(), [](char c) { return !printable(c, ' '); }, '?');
  out.put_characters(reason);
  VerdictBytes bytes = out.block<kVerdictBytes>();
  if (key == nullptr) return bytes;
  const Digest code = verdict_code(*key, bytes, request, relay_nonce);
  std::copy(code.begin(), code.end(), bytes.end() - kCodeBytes);
  return bytes;
}

Challenge decode_challenge(std::span<const std::byte, kChallengeBytes> bytes) {
  ByteReader in = opened(bytes, kChallengeMagic, "the relay is not a relay");
  Challenge challenge;
  challenge.version = in.number<std::uint32_t>();
  if (challenge.version != kVersion) return challenge;
  in.zeros(sizeof(std::uint32_t), "a field that is zero is not");
  challenge.nonce = in.array<sizeof(Nonce)>();
  return challenge;
}

Request decode_request(std::span<const std::byte, kRequestBytes> bytes) {
  ByteReader in = opened(bytes, kRequestMagic, "a peer that calls the relay is none of Maki's");
  if (const auto version = in.number<std::uint32_t>(); version != kVersion)
    throw ProtocolError("a peer speaks version " + std::to_string(version) + " of the relay's greeting");
  Request request;
  const auto want = in.number<std::uint32_t>();
  if (want < 1 || want > 3) throw ProtocolError("a peer wants something that no relay does", std::to_string(want));
  request.want = static_cast<Want>(want);
  request.name = get_text(in, kNameBytes, '!');
  request.key_id = in.characters(kKeyIdBytes);
  if (request.name.empty()) throw ProtocolError("a peer's request to the relay is damaged", "it names nothing");
  if (!valid_key_id(request.key_id)) throw ProtocolError("a peer's request to the relay is damaged", "no key id");
  request.nonce = in.array<sizeof(Nonce)>();
  return request;
}

Verdict decode_verdict(std::span<const std::byte, kVerdictBytes> bytes) {
  ByteReader in = opened(bytes, kVerdictMagic, "the relay's verdict is none");
  const auto version = in.number<std::uint32_t>(), code = in.number<std::uint32_t>();
  if (version != kVersion || code > static_cast<std::uint32_t>(Code::kRefused))
    throw ProtocolError("the relay's verdict is none that this version knows");
  return {static_cast<Code>(code), get_text(in, kReasonBytes, ' ')};
}

bool signed_with(const Key& key, const RequestBytes& request, const Nonce& relay_nonce) {
  return same_in_constant_time(request_code(key, request, relay_nonce), code_in(request));
}

bool signed_with(const Key& key, const VerdictBytes& verdict, const RequestBytes& request, const Nonce& relay_nonce) {
  return same_in_constant_time(verdict_code(key, verdict, request, relay_nonce), code_in(verdict));
}

IoStatus Transfer::send(int descriptor) {
  while (done_ < bytes_.size()) {
    const ssize_t sent = ::send(descriptor, bytes_.data() + done_, bytes_.size() - done_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return retry_later(errno) ? IoStatus::kWantWrite : IoStatus::kClosed;
    done_ += static_cast<std::size_t>(sent);
  }
  return IoStatus::kDone;
}

IoStatus Transfer::receive(int descriptor) {
  while (done_ < bytes_.size()) {
    const ssize_t got = ::recv(descriptor, bytes_.data() + done_, bytes_.size() - done_, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return retry_later(errno) ? IoStatus::kWantRead : IoStatus::kClosed;
    if (got == 0) return IoStatus::kClosed;
    done_ += static_cast<std::size_t>(got);
  }
  return IoStatus::kDone;
}

}  // namespace maki::wan::admission
