#include "wan/net/relay/admission.hpp"

#include "wan/net/error.hpp"
#include "wan/net/relay/admission_wire.hpp"

namespace maki::wan {
namespace {

using namespace admission;

class Admission final : public RelayAdmission {
 public:
  Admission(const Key& key, Want want, const std::string& name) : key_(key), request_{want, name, key.id, {}} {
    encode(request_, Nonce{}, key_);  // finds fault with the name now, not in the middle of a conversation
    random_bytes(request_.nonce);
  }

  IoStatus progress(int descriptor) override {
    if (step_ == Step::kChallenge) {
      if (const IoStatus status = challenge_.receive(descriptor); status != IoStatus::kDone) return status;
      reply();
      step_ = Step::kRequest;
    }
    if (step_ == Step::kRequest) {
      if (const IoStatus status = reply_.send(descriptor); status != IoStatus::kDone) return status;
      step_ = Step::kVerdict;
    }
    if (step_ == Step::kVerdict) {
      if (const IoStatus status = verdict_.receive(descriptor); status != IoStatus::kDone) return status;
      judge();
      step_ = Step::kDone;
    }
    return IoStatus::kDone;
  }

  bool try_again() const override { return try_again_; }

 private:
  enum class Step { kChallenge, kRequest, kVerdict, kDone };

  void reply() {
    const Challenge challenge = decode_challenge(to_array<kChallengeBytes>(challenge_));
    if (challenge.version != kVersion)
      throw Error("the relay speaks version " + std::to_string(challenge.version) + " of its greeting",
                  "this program speaks version " + std::to_string(kVersion), "use the same version of maki at both");
    relay_nonce_ = challenge.nonce;
    request_bytes_ = encode(request_, relay_nonce_, key_);
    reply_ = Transfer(request_bytes_);
  }

  void judge() {
    const auto bytes = to_array<kVerdictBytes>(verdict_);
    const Verdict verdict = decode_verdict(bytes);
    const bool is_signed = signed_with(key_, bytes, request_bytes_, relay_nonce_);
    // The one refusal that a relay cannot sign: the callers see to it that it ends nothing that stands.
    if (verdict.code == Code::kKey)
      throw SecurityError("the relay does not admit us with key " + key_.id, verdict.reason,
                          "give the relay this key (maki wan relay --key), or use one that it has");
    if (!is_signed)
      throw SecurityError("the relay could not show that it holds key " + key_.id, "its verdict is not signed with it",
                          "check the relay's address, and that both have the same key file");
    if (verdict.code == Code::kAdmitted) return;
    try_again_ = verdict.try_again();
    throw Error("the relay did not " + wish(), verdict.reason);
  }

  std::string wish() const {
    if (request_.want == Want::kConnect) return "connect us to '" + request_.name + "'";
    if (request_.want == Want::kListen) return "register us as '" + request_.name + "'";
    return "take our answer to a call";
  }

  Key key_;
  Request request_;
  Step step_ = Step::kChallenge;
  Transfer challenge_{kChallengeBytes}, reply_{0}, verdict_{kVerdictBytes};
  Nonce relay_nonce_{};
  RequestBytes request_bytes_{};
  bool try_again_ = false;
};

}  // namespace

std::unique_ptr<RelayAdmission> RelayAdmission::connect_to(const Key& key, const std::string& target) {
  return std::make_unique<Admission>(key, Want::kConnect, target);
}

std::unique_ptr<RelayAdmission> RelayAdmission::listen_as(const Key& key, const std::string& name) {
  return std::make_unique<Admission>(key, Want::kListen, name);
}

std::unique_ptr<RelayAdmission> RelayAdmission::answer(const Key& key, const std::string& token) {
  return std::make_unique<Admission>(key, Want::kAnswer, token);
}

}  // namespace maki::wan
