#include "wan/net/relay/admission.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "wan/net/byte_codec.hpp"
#include "wan/net/error.hpp"

namespace maki::wan::admission {

// ---- bytes ---------------------------------------------------------------------------------------------------------

namespace {

// Each message begins with 8 bytes of magic and two words; request and verdict end with their HMAC.
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

// A text that ends at the first zero; the rest must be zero too, so that the encoding is unique.
std::string get_text(ByteReader& in, std::size_t room, char least) {
  std::string text = in.characters(room);
  const std::size_t end = std::min(text.find('\0'), text.size());
  const bool ends = end < text.size() && std::all_of(text.begin() + end, text.end(), [](char c) { return c == '\0'; });
  text.resize(end);
  if (!ends || !std::all_of(text.begin(), text.end(), [least](char c) { return printable(c, least); }))
    in.fail("a text in it is not printable");
  return text;
}

// The fields after the magic.
ByteReader opened(std::span<const std::byte> bytes, std::string_view magic, const char* what) {
  ByteReader in(bytes, "a relay's greeting", "the relay's greeting is damaged");
  if (in.characters(kMagicBytes) != magic)
    throw ProtocolError(what, "its first bytes are not those of a relay's greeting", "check address and port");
  return in;
}

bool valid_key_id(const std::string& id) { return is_hex(id, kKeyIdBytes); }

// HMAC of the concatenated parts. All but the label have fixed sizes, so different lists of parts never give the same
// bytes.
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
  return block<kChallengeBytes>(out.bytes());
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
  RequestBytes bytes = block<kRequestBytes>(out.bytes());
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
  VerdictBytes bytes = block<kVerdictBytes>(out.bytes());
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

}  // namespace maki::wan::admission

namespace maki::wan {

// ---- the relay's side ----------------------------------------------------------------------------------------------

namespace {

namespace fs = std::filesystem;
using namespace admission;

std::vector<std::string> keys_in(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(directory, failed)) {
    if (entry.path().extension() == ".key") files.push_back(entry.path().string());
  }
  if (failed) throw SecurityError("cannot read the directory of keys '" + directory + "'", failed.message());
  if (files.empty()) throw SecurityError("no key in the directory '" + directory + "'", "no file is called *.key");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

KeyRing KeyRing::read(const std::vector<std::string>& files) {
  KeyRing ring;
  for (const std::string& file : files) {
    std::error_code failed;
    const bool directory = fs::is_directory(file, failed);
    for (const std::string& one : directory ? keys_in(file) : std::vector{file}) ring.add(read_key(one));
  }
  if (ring.size() == 0)
    throw SecurityError("the relay has no key", "only peers that hold one of its keys may use it",
                        "make one with 'maki wan keygen', give it here with --key and copy it to the peers");
  return ring;
}

void KeyRing::add(const Key& key) {
  const auto [place, added] = keys_.emplace(key.id, key);
  if (!added && !same_in_constant_time(place->second.secret, key.secret))
    throw SecurityError("two of the relay's keys have the id " + key.id, "their secrets differ",
                        "leave one of them out");
}

const Key* KeyRing::find(const std::string& id) const {
  const auto found = keys_.find(id);
  return found == keys_.end() ? nullptr : &found->second;
}

AdmissionCheck::AdmissionCheck(const KeyRing& keys) : keys_(keys), incoming_(kRequestBytes) {
  random_bytes(nonce_);
  challenge_ = Transfer(encode(Challenge{kVersion, nonce_}));
}

IoStatus AdmissionCheck::receive(int descriptor) {
  if (const IoStatus status = challenge_.send(descriptor); status != IoStatus::kDone) return status;
  if (const IoStatus status = incoming_.receive(descriptor); status != IoStatus::kDone) return status;
  request_bytes_ = block<kRequestBytes>(incoming_.bytes());
  request_ = decode_request(request_bytes_);
  const Key* key = keys_.find(request_.key_id);
  if (key != nullptr && signed_with(*key, request_bytes_, nonce_)) key_ = key;
  return IoStatus::kDone;
}

void AdmissionCheck::decide(const Verdict& verdict) {
  verdict_ = Transfer(encode(verdict, request_bytes_, nonce_, key_));
}

// ---- the peer's side -----------------------------------------------------------------------------------------------

RelayAdmission::RelayAdmission(const Key& key, Want want, const std::string& name)
    : key_(key), request_{want, name, key.id, {}} {
  encode(request_, Nonce{}, key_);  // reports an invalid name now rather than in the middle of the exchange
  random_bytes(request_.nonce);
}

IoStatus RelayAdmission::progress(int descriptor) {
  if (const IoStatus status = challenge_.receive(descriptor); status != IoStatus::kDone) return status;
  if (reply_.bytes().empty()) reply();
  if (const IoStatus status = reply_.send(descriptor); status != IoStatus::kDone) return status;
  if (const IoStatus status = verdict_.receive(descriptor); status != IoStatus::kDone) return status;
  judge();
  return IoStatus::kDone;
}

void RelayAdmission::reply() {
  const Challenge challenge = decode_challenge(block<kChallengeBytes>(challenge_.bytes()));
  if (challenge.version != kVersion)
    throw Error("the relay speaks version " + std::to_string(challenge.version) + " of its greeting",
                "this program speaks version " + std::to_string(kVersion), "use the same version of maki at both");
  relay_nonce_ = challenge.nonce;
  request_bytes_ = encode(request_, relay_nonce_, key_);
  reply_ = Transfer(request_bytes_);
}

void RelayAdmission::judge() {
  const auto bytes = block<kVerdictBytes>(verdict_.bytes());
  const Verdict verdict = decode_verdict(bytes);
  // The one refusal that a relay cannot sign: callers must not end an existing session on it.
  if (verdict.code == Code::kKey)
    throw SecurityError("the relay does not admit us with key " + key_.id, verdict.reason,
                        "give the relay this key (maki wan relay --key), or use one that it has");
  if (!signed_with(key_, bytes, request_bytes_, relay_nonce_))
    throw SecurityError("the relay could not show that it holds key " + key_.id, "its verdict is not signed with it",
                        "check the relay's address, and that both have the same key file");
  if (verdict.code == Code::kAdmitted) return;
  try_again_ = verdict.try_again();
  const std::string action = request_.want == Want::kConnect  ? "connect us to '" + request_.name + "'"
                             : request_.want == Want::kListen ? "register us as '" + request_.name + "'"
                                                              : "take our answer to a call";
  throw Error("the relay did not " + action, verdict.reason);
}

}  // namespace maki::wan
