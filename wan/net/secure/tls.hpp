// TLS 1.3 for channels, by OpenSSL 3: external pre-shared keys with (EC)DHE, or mutual certificates. Only for this
// folder.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <vector>

#include "wan/net/secure/channel.hpp"
#include "wan/net/secure/key.hpp"

namespace maki::wan {

struct FreeSsl {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

class TlsContext final : public SecurityContext {
 public:
  explicit TlsContext(const Security& security);  // keys or certificates

  bool uses_keys() const { return !keys_.empty(); }
  const Key& first_key() const { return keys_.front(); }
  const Key* find_key(const std::string& id) const;
  const std::string& peer_name() const { return peer_name_; }
  SSL_CTX* of(Side side) const { return (side == Side::kConnecting ? connecting_ : listening_).get(); }

 private:
  std::vector<Key> keys_;
  std::string peer_name_;
  std::unique_ptr<SSL_CTX, FreeSsl> connecting_, listening_;
};

// Observations during a handshake; OpenSSL's callbacks write them.
struct HandshakeNotes {
  const TlsContext* context = nullptr;
  std::string offered_id;    // the last key id that the peer offered
  const Key* key = nullptr;  // ours with that id
  std::string refused_name;  // in a certificate that failed
};

// Bytes sent after which keys are updated: far below the limit of RFC 8446 (5.5) for AES-GCM with full records.
inline constexpr std::uint64_t kRekeyBytes = std::uint64_t{1} << 36;

std::unique_ptr<Channel> make_tls_channel(std::shared_ptr<const TlsContext> context, Socket socket, Side side,
                                          const std::string& peer_host, std::uint64_t rekey_bytes = kRekeyBytes);

// OpenSSL's reason for the last failure on this thread, as helpful text. `peer`: its name in the message.
SecurityError tls_error(SSL* ssl, const HandshakeNotes& notes, Side side, const std::string& peer);
// The name in a certificate: the first DNS name or address of the subject alternative names, else the common name;
// empty if none.
std::string certificate_name(X509* certificate);

}  // namespace maki::wan
