#include "wan/net/relay/admission_wire.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "wan/net/error.hpp"

namespace maki::wan::admission {
namespace {

// Where things are. Each message begins with 8 bytes of magic and two words; request and verdict end with their code.
constexpr std::size_t kMagicBytes = 8, kFirstWord = 8, kSecondWord = 12, kBody = 16, kCodeBytes = 32;
constexpr std::size_t kNameBytes = kMaxName + 1, kReasonBytes = kMaxReason + 1;
constexpr std::size_t kNameAt = kBody, kKeyIdAt = kNameAt + kNameBytes, kNonceAt = kKeyIdAt + kKeyIdBytes;
constexpr std::size_t kReasonAt = kBody;
static_assert(kBody + sizeof(Nonce) == kChallengeBytes);
static_assert(kNonceAt + sizeof(Nonce) + kCodeBytes == kRequestBytes);
static_assert(kReasonAt + kReasonBytes + kCodeBytes == kVerdictBytes);

constexpr std::string_view kChallengeMagic = "MAKIrly?", kRequestMagic = "MAKIrly>", kVerdictMagic = "MAKIrly!";
constexpr std::string_view kRequestLabel = "maki relay request 1", kVerdictLabel = "maki relay verdict 1";

void put_word(std::span<std::byte> bytes, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
}

std::uint32_t get_word(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value |= std::to_integer<std::uint32_t>(bytes[at + i]) << (8 * i);
  return value;
}

void put_text(std::span<std::byte> bytes, std::size_t at, std::string_view text) {
  std::memcpy(bytes.data() + at, text.data(), text.size());
}

bool printable(char c, char least) { return c >= least && c <= '~'; }

// A text that ends at the first zero; all after it is zero too, so that there is one way to write it.
std::string get_text(std::span<const std::byte> bytes, char least) {
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t end = std::min(text.find('\0'), text.size());
  const bool ends = end < text.size() && std::all_of(text.begin() + end, text.end(), [](char c) { return c == '\0'; });
  text.resize(end);
  if (!ends || !std::all_of(text.begin(), text.end(), [least](char c) { return printable(c, least); }))
    throw ProtocolError("the relay's greeting is damaged", "a text in it is not printable");
  return text;
}

void check_magic(std::span<const std::byte> bytes, std::string_view magic, const char* what) {
  if (std::memcmp(bytes.data(), magic.data(), kMagicBytes) != 0)
    throw ProtocolError(what, "its first bytes are not those of a relay's greeting", "check address and port");
}

bool valid_key_id(const std::string& id) {
  return id.size() == kKeyIdBytes && id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

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
  ChallengeBytes bytes{};
  put_text(bytes, 0, kChallengeMagic);
  put_word(bytes, kFirstWord, challenge.version);
  std::copy(challenge.nonce.begin(), challenge.nonce.end(), bytes.begin() + kBody);
  return bytes;
}

RequestBytes encode(const Request& request, const Nonce& relay_nonce, const Key& key) {
  if (!valid_name(request.name))
    throw Error("'" + request.name + "' cannot be a name at a relay", "",
                "use 1 to 63 printable characters without blanks");
  if (!valid_key_id(request.key_id)) throw Error("the relay's key has no id of 16 hexadecimal digits", request.key_id);
  RequestBytes bytes{};
  put_text(bytes, 0, kRequestMagic);
  put_word(bytes, kFirstWord, kVersion);
  put_word(bytes, kSecondWord, static_cast<std::uint32_t>(request.want));
  put_text(bytes, kNameAt, request.name);
  put_text(bytes, kKeyIdAt, request.key_id);
  std::copy(request.nonce.begin(), request.nonce.end(), bytes.begin() + kNonceAt);
  const Digest code = request_code(key, bytes, relay_nonce);
  std::copy(code.begin(), code.end(), bytes.end() - kCodeBytes);
  return bytes;
}

VerdictBytes encode(const Verdict& verdict, const RequestBytes& request, const Nonce& relay_nonce, const Key* key) {
  VerdictBytes bytes{};
  put_text(bytes, 0, kVerdictMagic);
  put_word(bytes, kFirstWord, kVersion);
  put_word(bytes, kSecondWord, static_cast<std::uint32_t>(verdict.code));
  std::string reason = verdict.reason.substr(0, kMaxReason);
  std::replace_if(
      reason.begin(), reason.end(), [](char c) { return !printable(c, ' '); }, '?');
  put_text(bytes, kReasonAt, reason);
  if (key == nullptr) return bytes;
  const Digest code = verdict_code(*key, bytes, request, relay_nonce);
  std::copy(code.begin(), code.end(), bytes.end() - kCodeBytes);
  return bytes;
}

Challenge decode_challenge(std::span<const std::byte, kChallengeBytes> bytes) {
  check_magic(bytes, kChallengeMagic, "the relay is not a relay");
  Challenge challenge;
  challenge.version = get_word(bytes, kFirstWord);
  if (challenge.version != kVersion) return challenge;
  if (get_word(bytes, kSecondWord) != 0)
    throw ProtocolError("the relay's greeting is damaged", "a field that is zero is not");
  std::copy(bytes.begin() + kBody, bytes.end(), challenge.nonce.begin());
  return challenge;
}

Request decode_request(std::span<const std::byte, kRequestBytes> bytes) {
  check_magic(bytes, kRequestMagic, "a peer that calls the relay is none of Maki's");
  if (const std::uint32_t version = get_word(bytes, kFirstWord); version != kVersion)
    throw ProtocolError("a peer speaks version " + std::to_string(version) + " of the relay's greeting");
  Request request;
  const std::uint32_t want = get_word(bytes, kSecondWord);
  if (want < 1 || want > 3) throw ProtocolError("a peer wants something that no relay does", std::to_string(want));
  request.want = static_cast<Want>(want);
  request.name = get_text(bytes.subspan(kNameAt, kNameBytes), '!');
  request.key_id = std::string(reinterpret_cast<const char*>(bytes.data()) + kKeyIdAt, kKeyIdBytes);
  if (request.name.empty()) throw ProtocolError("a peer's request to the relay is damaged", "it names nothing");
  if (!valid_key_id(request.key_id)) throw ProtocolError("a peer's request to the relay is damaged", "no key id");
  std::copy_n(bytes.begin() + kNonceAt, sizeof(Nonce), request.nonce.begin());
  return request;
}

Verdict decode_verdict(std::span<const std::byte, kVerdictBytes> bytes) {
  check_magic(bytes, kVerdictMagic, "the relay's verdict is none");
  const std::uint32_t version = get_word(bytes, kFirstWord), code = get_word(bytes, kSecondWord);
  if (version != kVersion || code > static_cast<std::uint32_t>(Code::kRefused))
    throw ProtocolError("the relay's verdict is none that this version knows");
  return {static_cast<Code>(code), get_text(bytes.subspan(kReasonAt, kReasonBytes), ' ')};
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
