// OpenSSL's reasons in words that say what to do.
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "wan/net/printable.hpp"
#include "wan/net/secure/tls.hpp"

namespace maki::wan {

namespace {

constexpr std::size_t kLongestName = 1000;

struct Words {
  std::string reason, advice;
};

bool is_no_tls(int reason) {
  switch (reason) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_UNKNOWN_PROTOCOL:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_RECORD_LENGTH_MISMATCH:
    case SSL_R_DATA_LENGTH_TOO_LONG:
    case SSL_R_UNEXPECTED_MESSAGE:
    case SSL_R_UNEXPECTED_RECORD:
    case SSL_R_BAD_RECORD_TYPE: return true;
    default: return false;
  }
}

// Alerts are what the other side says before it hangs up; OpenSSL reports number n as reason 1000 + n.
Words of_alert(int alert, const HandshakeNotes& notes, Side side) {
  const bool keys = notes.context->uses_keys();
  if (!keys && side == Side::kListening && !notes.offered_id.empty())
    return {fmt::format("the peer comes with the key {}, and this side uses certificates", printable(notes.offered_id)),
            "both sides have to use keys, or both certificates"};
  switch (alert) {
    case SSL_AD_HANDSHAKE_FAILURE:
    case SSL_AD_UNKNOWN_PSK_IDENTITY:
      if (keys && side == Side::kConnecting)
        return {fmt::format("the listener does not know our key {}", notes.context->first_key().id),
                "give it a copy of our key file, or use one of its keys"};
      return {"the other side found nothing that both accept", "both sides have to use keys, or both certificates"};
    case SSL_AD_ILLEGAL_PARAMETER:
    case SSL_AD_DECRYPT_ERROR:
      if (keys && side == Side::kConnecting)
        return {fmt::format("wrong key: the listener's key {} is not the same as ours", notes.context->first_key().id),
                "copy the key file again"};
      return {"the other side could not verify our signature",
              "check that private key and certificate belong together"};
    case SSL_AD_CERTIFICATE_EXPIRED:
      return {"the other side says that our certificate has expired", "get a new one, or check its clock"};
    case SSL_AD_UNKNOWN_CA:
      return {"the other side does not know the authority of our certificate", "check its setting authority"};
    case SSL_AD_CERTIFICATE_REQUIRED:
      return {"the other side asks for a certificate", "both sides have to use certificates"};
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
      return {"the other side refuses our certificate", "check its name, purpose and authority"};
    case SSL_AD_PROTOCOL_VERSION: return {"the other side speaks no TLS 1.3", "it needs OpenSSL 1.1.1 or newer"};
    default: return {fmt::format("the other side ended the handshake with alert {}", alert), "see its log"};
  }
}

Words of_certificate(long result, const HandshakeNotes& notes) {
  if (result == X509_V_ERR_CERT_HAS_EXPIRED) return {"the peer's certificate has expired", "it needs a new one"};
  if (result == X509_V_ERR_CERT_NOT_YET_VALID)
    return {"the peer's certificate is not valid yet", "check the clocks of both machines"};
  if (result == X509_V_ERR_HOSTNAME_MISMATCH || result == X509_V_ERR_IP_ADDRESS_MISMATCH) {
    return {fmt::format("the peer's certificate is for {}",
                        notes.refused_name.empty() ? "another name" : "'" + notes.refused_name + "'"),
            "if that is the right peer, set peer_name to it"};
  }
  if (result == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY || result == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
      result == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT || result == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE)
    return {"the peer's certificate is of an authority that we do not know", "check the setting authority"};
  return {fmt::format("the peer's certificate is refused: {}", X509_verify_cert_error_string(result)), ""};
}

Words of_our_side(int reason, SSL* ssl, const HandshakeNotes& notes, Side side) {
  const bool keys = notes.context->uses_keys();
  if (SSL_is_init_finished(ssl) == 0 && is_no_tls(reason))
    return {"the other side speaks no TLS", "either both sides use keys or certificates, or both say insecure = true"};
  if (reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_NO_PROTOCOLS_AVAILABLE)
    return {"the other side speaks no TLS 1.3", "it needs OpenSSL 1.1.1 or newer"};
  if (reason == SSL_R_BINDER_DOES_NOT_VERIFY)
    return {fmt::format("wrong key: the peer's key {} is not the same as ours", printable(notes.offered_id)),
            "copy the key file again"};
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && keys && side == Side::kConnecting)
    return {fmt::format("the listener showed a certificate in place of the key {}", notes.context->first_key().id),
            "both sides have to use keys, or both certificates"};
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) return of_certificate(SSL_get_verify_result(ssl), notes);
  if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
    return {"the peer shows no certificate", "both sides have to use certificates"};
  if (keys && side == Side::kListening && notes.key == nullptr) {
    if (notes.offered_id.empty())
      return {"the peer offers no key",
              "it has to use a key file of this side; both sides have to use keys, or both certificates"};
    return {fmt::format("the peer's key {} is not among ours", printable(notes.offered_id)),
            "give this side a copy of that key file"};
  }
  if (reason == SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC)
    return {"what came does not decrypt", "it was changed on the way"};
  const char* text = ERR_reason_error_string(ERR_peek_last_error());
  return {text != nullptr ? text : "no reason given by OpenSSL", ""};
}

}  // namespace

SecurityError tls_error(SSL* ssl, const HandshakeNotes& notes, Side side, const std::string& peer) {
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  const bool alert = reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256;
  const Words words =
      alert ? of_alert(reason - SSL_AD_REASON_OFFSET, notes, side) : of_our_side(reason, ssl, notes, side);
  const char* problem =
      SSL_is_init_finished(ssl) == 1 ? "the encrypted connection with {} is broken" : "no encrypted connection with {}";
  return SecurityError(fmt::format(fmt::runtime(problem), peer), words.reason, words.advice);
}

std::string certificate_name(X509* certificate) {
  const auto text_of = [](const ASN1_STRING* value) -> std::string {
    unsigned char* utf8 = nullptr;
    const int size = ASN1_STRING_to_UTF8(&utf8, value);
    if (size < 0) return {};
    std::string text(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(size));
    OPENSSL_free(utf8);
    return text;
  };
  std::string name;
  auto* names = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names) && name.empty(); ++i) {
    const GENERAL_NAME* one = sk_GENERAL_NAME_value(names, i);
    if (one->type == GEN_DNS) name = text_of(one->d.dNSName);
  }
  GENERAL_NAMES_free(names);
  if (name.empty()) {
    X509_NAME* subject = X509_get_subject_name(certificate);
    const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at >= 0) name = text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  }
  return printable(name, kLongestName);
}

}  // namespace maki::wan
