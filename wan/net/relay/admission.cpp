#include "wan/net/relay/admission.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "wan/net/byte_codec.hpp"
#include "wan/net/error.hpp"

namespace maki::wan::admission {

// ---- bytes ---------------------------------------------------------------------------------------------------------

namespace {

// Each message begins with its magic and the version; request and verdict end with their HMAC.
constexpr std::string_view kChallengeMagic = "MAKIrly?", kRequestMagic = "MAKIrly>", kVerdictMagic = "MAKIrly!";
constexpr std::string_view kRequestLabel = "maki relay request 1", kVerdictLabel = "maki relay verdict 1";
constexpr std::size_t kCodeBytes = sizeof(Digest);

template <class Io>
void fields(Io& io, Of<Io, Challenge>& challenge) {
  io.field(challenge.nonce);
}

template <class Io>
void fields(Io& io, Of<Io, Request>& request) {
  io.field(request.want, Want::kConnect, Want::kAnswer, "it wants something that no relay does");
  io.padded(request.name, kMaxName);
  io.padded(request.key_id, kKeyIdBytes);
  io.field(request.nonce);
}

template <class Io>
void fields(Io& io, Of<Io, Verdict>& verdict) {
  io.field(verdict.code, Code::kAdmitted, Code::kRefused, "its verdict is none that this version knows");
  io.padded(verdict.reason, kMaxReason);
}

template <class Message>
ByteWriter written(std::string_view magic, const Message& message, std::uint32_t version = kVersion) {
  ByteWriter out;
  out.put_characters(magic);
  out.put(version);
  fields(out, message);
  return out;
}

// The version and the fields after it.
ByteReader opened(std::span<const std::byte> bytes, std::string_view magic, const char* what) {
  ByteReader in(bytes, "a greeting at a relay", "a greeting at a relay is damaged");
  if (in.characters(magic.size()) != magic)
    throw ProtocolError(what, "its first bytes are not those of a relay's greeting", "check address and port");
  return in;
}

template <class Message>
Message read(ByteReader& in) {
  if (const auto version = in.number<std::uint32_t>(); version != kVersion)
    in.fail("its version is " + std::to_string(version));
  Message message;
  fields(in, message);
  in.end();
  return message;
}

// HMAC of the concatenated parts. All but the label have fixed sizes, so different lists of parts never give the same
// bytes.
Digest code_of(const Key& key, std::initializer_list<std::span<const std::byte>> parts) {
  std::vector<std::byte> text;
  for (const auto& part : parts) text.insert(text.end(), part.begin(), part.end());
  return hmac_sha256(key.secret, text);
}

std::span<const std::byte> label(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

std::span<const std::byte> without_code(std::span<const std::byte> bytes) {
  return bytes.first(bytes.size() - kCodeBytes);
}

// Of messages without their codes, but for the request in that of a verdict.
Digest request_code(const Key& key, std::span<const std::byte> request, const Nonce& nonce) {
  return code_of(key, {label(kRequestLabel), nonce, request});
}

Digest verdict_code(const Key& key, std::span<const std::byte> verdict, const RequestBytes& request,
                    const Nonce& nonce) {
  return code_of(key, {label(kVerdictLabel), nonce, request, verdict});
}

}  // namespace

bool valid_name(const std::string& name) {
  return !name.empty() && name.size() <= kMaxName &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; });
}

ChallengeBytes encode(const Challenge& challenge) {
  return block<kChallengeBytes>(written(kChallengeMagic, challenge, challenge.version).bytes());
}

RequestBytes encode(const Request& request, const Nonce& relay_nonce, const Key& key) {
  if (!valid_name(request.name))
    throw Error("'" + request.name + "' cannot be a name at a relay", "",
                "use 1 to 63 printable characters without blanks");
  ByteWriter out = written(kRequestMagic, request);
  out.put_bytes(request_code(key, out.bytes(), relay_nonce));
  return block<kRequestBytes>(out.bytes());
}

VerdictBytes encode(const Verdict& verdict, const RequestBytes& request, const Nonce& relay_nonce, const Key* key) {
  ByteWriter out = written(kVerdictMagic, Verdict{verdict.code, printable(verdict.reason, kMaxReason)});
  if (key != nullptr) out.put_bytes(verdict_code(*key, out.bytes(), request, relay_nonce));
  return block<kVerdictBytes>(out.bytes());
}

Challenge decode_challenge(std::span<const std::byte, kChallengeBytes> bytes) {
  ByteReader in = opened(bytes, kChallengeMagic, "the relay is not a relay");
  Challenge challenge;
  in.field(challenge.version);
  if (challenge.version != kVersion) return challenge;
  fields(in, challenge);
  in.zeros(in.left(), "bytes that have no meaning are set");
  return challenge;
}

Request decode_request(std::span<const std::byte, kRequestBytes> bytes) {
  ByteReader in = opened(without_code(bytes), kRequestMagic, "a peer that calls the relay is none of Maki's");
  const auto request = read<Request>(in);
  if (!valid_name(request.name)) in.fail("it names nothing that could be there");
  if (!is_hex(request.key_id, kKeyIdBytes)) in.fail("no key id");
  return request;
}

Verdict decode_verdict(std::span<const std::byte, kVerdictBytes> bytes) {
  ByteReader in = opened(without_code(bytes), kVerdictMagic, "the relay's verdict is none");
  const auto verdict = read<Verdict>(in);
  if (printable(verdict.reason) != verdict.reason) in.fail("a text in it is not printable");
  return verdict;
}

bool signed_with(const Key& key, const RequestBytes& request, const Nonce& relay_nonce) {
  return same_in_constant_time(request_code(key, without_code(request), relay_nonce),
                               std::span(request).last(kCodeBytes));
}

bool signed_with(const Key& key, const VerdictBytes& verdict, const RequestBytes& request, const Nonce& relay_nonce) {
  return same_in_constant_time(verdict_code(key, without_code(verdict), request, relay_nonce),
                               std::span(verdict).last(kCodeBytes));
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
