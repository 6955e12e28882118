#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "wan/net/error.hpp"
#include "wan/net/secure/tls.hpp"

namespace maki::wan {

// ---- contexts ------------------------------------------------------------------------------------------------------

namespace {

// SHA-256 suites only: a pre-shared key belongs to one hash, and OpenSSL ignores a SHA-256 key with any other.
constexpr double kTryAgain = 1;  // seconds
constexpr const char* kSuites = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";

std::string openssl_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason != nullptr ? reason : "no reason given by OpenSSL";
}

void must(bool good, const char* what) {
  if (!good)
    throw SecurityError(fmt::format("OpenSSL cannot {}", what), openssl_reason(),
                        "check the installation of OpenSSL 3");
}

// A session that represents the key, as for external keys in RFC 8446 (4.2.11): OpenSSL takes it over.
SSL_SESSION* session_of(SSL* ssl, const Key& key) {
  static constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, kAes128GcmSha256);
  SSL_SESSION* session = SSL_SESSION_new();
  if (session == nullptr || cipher == nullptr ||
      SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key.secret.data()),
                                  key.secret.size()) != 1 ||
      SSL_SESSION_set_cipher(session, cipher) != 1 || SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) != 1) {
    SSL_SESSION_free(session);
    return nullptr;
  }
  return session;
}

HandshakeNotes& notes_of(SSL* ssl) { return *static_cast<HandshakeNotes*>(SSL_get_app_data(ssl)); }

// Connecting: offers our first key. `digest` is set on a second hello only, and must then be the key's.
int offer_key(SSL* ssl, const EVP_MD* digest, const unsigned char** id, std::size_t* id_size, SSL_SESSION** session) {
  HandshakeNotes& notes = notes_of(ssl);
  notes.key = &notes.context->first_key();
  *id = reinterpret_cast<const unsigned char*>(notes.key->id.data());
  *id_size = notes.key->id.size();
  *session = nullptr;
  if (digest != nullptr && EVP_MD_get_type(digest) != NID_sha256) return 1;
  *session = session_of(ssl, *notes.key);
  return *session != nullptr ? 1 : 0;
}

// Listening: looks up the key that the peer names. Without one the handshake continues, and fails as we have no
// certificate.
int find_key(SSL* ssl, const unsigned char* id, std::size_t id_size, SSL_SESSION** session) {
  HandshakeNotes& notes = notes_of(ssl);
  notes.offered_id.assign(reinterpret_cast<const char*>(id), std::min<std::size_t>(id_size, 64));
  notes.key = notes.context->find_key(notes.offered_id);
  *session = nullptr;
  if (notes.key == nullptr) return 1;
  *session = session_of(ssl, *notes.key);
  return *session != nullptr ? 1 : 0;
}

// Does not change OpenSSL's result: keeps name and depth of the certificate for the message.
int keep_refused(int passed, X509_STORE_CTX* store) {
  if (passed != 0) return passed;
  auto* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  HandshakeNotes& notes = notes_of(ssl);
  notes.refused_depth = X509_STORE_CTX_get_error_depth(store);
  if (X509* certificate = X509_STORE_CTX_get_current_cert(store)) notes.refused_name = certificate_name(certificate);
  return passed;
}

// One call of SSL_read works through all that the peer sends beside its data, with or without SSL_MODE_AUTO_RETRY as
// long as there is read-ahead: beyond the limit the connection counts as shut down, so that the call ends.
void count_beside_data(int written, int, int type, const void* bytes, std::size_t, SSL* ssl, void*) {
  HandshakeNotes& notes = notes_of(ssl);
  if (written != 0 || !notes.established) return;
  const bool without_data =
      type == SSL3_RT_INNER_CONTENT_TYPE && *static_cast<const unsigned char*>(bytes) != SSL3_RT_APPLICATION_DATA;
  if (!without_data && type != SSL3_RT_HANDSHAKE) return;
  ++notes.beside_data;
  if (notes.too_many()) SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN);
}

std::unique_ptr<SSL_CTX, FreeSsl> make_context(Side side) {
  std::unique_ptr<SSL_CTX, FreeSsl> owner(
      SSL_CTX_new(side == Side::kConnecting ? TLS_client_method() : TLS_server_method()));
  SSL_CTX* context = owner.get();
  must(context != nullptr, "make a TLS context");
  must(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1, "ask for TLS 1.3");
  must(SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1, "ask for TLS 1.3");
  must(SSL_CTX_set_ciphersuites(context, kSuites) == 1, "set the cipher suites");
  // No tickets and no early data: no session is ever resumed, so nothing can be replayed.
  must(SSL_CTX_set_num_tickets(context, 0) == 1, "turn tickets off");
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_early_data(context, 0);
  SSL_CTX_set_recv_max_early_data(context, 0);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_clear_options(context, SSL_OP_ALLOW_NO_DHE_KEX);
  // Before a peer is authenticated, its buffers are freed whenever they are empty.
  SSL_CTX_set_mode(context, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_msg_callback(context, count_beside_data);
  return owner;
}

int no_passphrase(char*, int, int, void*) { return -1; }  // never asks at a terminal

struct FreeFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

void use_private_key(SSL_CTX* context, const std::string& path) {
  const std::string problem = "cannot use private key " + path;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) throw SecurityError(problem, std::strerror(errno), "check the setting private_key");
  const std::unique_ptr<std::FILE, FreeFile> file(::fdopen(descriptor, "r"));
  check_private_file(descriptor, path, "private key");
  ERR_clear_error();
  EVP_PKEY* key = PEM_read_PrivateKey(file.get(), nullptr, no_passphrase, nullptr);
  if (key == nullptr)
    throw SecurityError(problem, openssl_reason(), "give a PEM file with a private key and without a passphrase");
  const bool good = SSL_CTX_use_PrivateKey(context, key) == 1 && SSL_CTX_check_private_key(context) == 1;
  EVP_PKEY_free(key);
  if (!good) throw SecurityError(problem, openssl_reason(), "it has to be the key of the certificate given");
}

bool has_expired(const X509* certificate) { return X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0; }
bool is_too_early(const X509* certificate) { return X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0; }

void check_dates(const X509* certificate, const std::string& problem) {
  if (has_expired(certificate)) throw SecurityError(problem, "it has expired", "get a new one");
  if (is_too_early(certificate)) throw SecurityError(problem, "it is not valid yet", "check this machine's clock");
}

// A file of several, as while one replaces another, needs one of today.
void use_authority(SSL_CTX* context, const std::string& file) {
  const std::string problem = "cannot use authority " + file;
  if (SSL_CTX_load_verify_file(context, file.c_str()) != 1)
    throw SecurityError(problem, openssl_reason(), "give a PEM file with the certificate of whoever signed the peer's");
  const STACK_OF(X509_OBJECT)* all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
  const X509* dated = nullptr;
  for (int i = 0; i < sk_X509_OBJECT_num(all); ++i) {
    const X509* one = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));
    if (one == nullptr) continue;  // a list of revoked ones
    if (!has_expired(one) && !is_too_early(one)) return;
    dated = one;
  }
  if (dated != nullptr) check_dates(dated, problem);
}

void use_certificate(SSL_CTX* context, const Security& security) {
  ERR_clear_error();
  const std::string problem = "cannot use certificate " + security.certificate;
  if (SSL_CTX_use_certificate_chain_file(context, security.certificate.c_str()) != 1)
    throw SecurityError(problem, openssl_reason(), "give a PEM file with our certificate first");
  check_dates(SSL_CTX_get0_certificate(context), problem);
  use_private_key(context, security.private_key);
  use_authority(context, security.authority);
}

}  // namespace

TlsContext::TlsContext(const Security& security) : SecurityContext(security), security_(security) {
  for (const std::string& file : security.key_files) {
    Key key = read_key(file);
    if (find_key(key.id) != nullptr)
      throw SecurityError("cannot use key file " + file, "another file given has the same id", "give each key once");
    keys_.push_back(std::move(key));
  }
  if (!uses_keys()) stamps_ = stamps();
  contexts_ = uses_keys() ? of_keys() : of_certificates();
}

TlsContext::Contexts TlsContext::of_keys() const {
  const Contexts made{make_context(Side::kConnecting), make_context(Side::kListening)};
  SSL_CTX_set_psk_use_session_callback(made.connecting.get(), offer_key);
  SSL_CTX_set_psk_find_session_callback(made.listening.get(), wan::find_key);
  // No authority is known, so a listener that shows a certificate instead of the key fails.
  SSL_CTX_set_verify(made.connecting.get(), SSL_VERIFY_PEER, nullptr);
  return made;
}

TlsContext::Contexts TlsContext::of_certificates() const {
  const Contexts made{make_context(Side::kConnecting), make_context(Side::kListening)};
  SSL_CTX_set_psk_find_session_callback(made.listening.get(), wan::find_key);  // has none: records the id offered
  for (SSL_CTX* context : {made.connecting.get(), made.listening.get()}) {
    use_certificate(context, security_);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, keep_refused);
  }
  return made;
}

std::array<TlsContext::Stamp, 3> TlsContext::stamps() const {
  const auto of_file = [](const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return Stamp{};
    return Stamp{static_cast<std::int64_t>(status.st_ino), status.st_size,
                 status.st_mtim.tv_sec * std::int64_t{1000000000} + status.st_mtim.tv_nsec};
  };
  return {of_file(security_.certificate), of_file(security_.private_key), of_file(security_.authority)};
}

// Stamps come first: files that change while they are read are read once more.
void TlsContext::renew() const {
  const auto now = stamps();
  const bool failed = now == failed_;
  if (now == stamps_ || (failed && seconds_since(failed_at_) < kTryAgain)) return;
  try {
    contexts_ = of_certificates();
    stamps_ = now;
    log(LogLevel::kInfo, "certificate " + security_.certificate + " has been read anew");
  } catch (const SecurityError& e) {
    failed_ = now;
    failed_at_ = WallClock::now();
    if (!failed) log(LogLevel::kWarning, fmt::format("the certificate read before stays in use: {}", e.what()));
  }
}

std::shared_ptr<SSL_CTX> TlsContext::of(Side side) const {
  const std::scoped_lock lock(mutex_);
  if (!uses_keys()) renew();
  return side == Side::kConnecting ? contexts_.connecting : contexts_.listening;
}

const Key* TlsContext::find_key(const std::string& id) const {
  for (const Key& key : keys_)
    if (key.id == id) return &key;
  return nullptr;
}

// ---- OpenSSL's reasons as text that says what to do ----------------------------------------------------------------

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

// Alerts give the other side's reason for closing; OpenSSL reports number n as reason 1000 + n.
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
      return {"the other side says that our certificate has expired, or its authority's",
              "get a new one, or check its clock"};
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
  const std::string whose = notes.refused_depth == 0
                                ? "the peer's certificate"
                                : fmt::format("the authority's certificate ('{}')", notes.refused_name);
  if (result == X509_V_ERR_CERT_HAS_EXPIRED)
    return {whose + " has expired", notes.refused_depth == 0 ? "it needs a new one" : "both sides need its new one"};
  if (result == X509_V_ERR_CERT_NOT_YET_VALID)
    return {whose + " is not valid yet", "check the clocks of both machines"};
  if (result == X509_V_ERR_HOSTNAME_MISMATCH || result == X509_V_ERR_IP_ADDRESS_MISMATCH) {
    return {fmt::format("the peer's certificate is for {}",
                        notes.refused_name.empty() ? "another name" : "'" + notes.refused_name + "'"),
            "if that is the right peer, set peer_name to it"};
  }
  if (result == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY || result == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
      result == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT || result == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE)
    return {"the peer's certificate is of an authority that we do not know", "check the setting authority"};
  return {fmt::format("{} is refused: {}", whose, X509_verify_cert_error_string(result)), ""};
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
  return {openssl_reason(), ""};
}

}  // namespace

SecurityError tls_error(SSL* ssl, const HandshakeNotes& notes, Side side, const std::string& peer) {
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  const bool alert = reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256;
  const Words words = notes.too_many() ? Words{"the peer changes its keys again and again without data in between", ""}
                      : alert          ? of_alert(reason - SSL_AD_REASON_OFFSET, notes, side)
                                       : of_our_side(reason, ssl, notes, side);
  const char* problem = notes.established || SSL_is_init_finished(ssl) == 1
                            ? "the encrypted connection with {} is broken"
                            : "no encrypted connection with {}";
  return SecurityError(fmt::format(fmt::runtime(problem), peer), words.reason, words.advice);
}

// The text of an address of 4 or 16 bytes; "" of others.
static std::string address_text(const ASN1_OCTET_STRING* address) {
  const int size = ASN1_STRING_length(address);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (size == 4 || size == 16)
    inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(address), text.data(), text.size());
  return text.data();
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
  std::string name, address;
  auto* names = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names) && name.empty(); ++i) {
    const GENERAL_NAME* one = sk_GENERAL_NAME_value(names, i);
    if (one->type == GEN_DNS) name = text_of(one->d.dNSName);
    if (one->type == GEN_IPADD && address.empty()) address = address_text(one->d.iPAddress);
  }
  GENERAL_NAMES_free(names);
  if (name.empty()) {
    X509_NAME* subject = X509_get_subject_name(certificate);
    const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at >= 0) name = text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  }
  return printable(name.empty() ? address : name, kLongestName);
}

}  // namespace maki::wan
