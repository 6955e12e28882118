// TLS 1.3 for channels, by OpenSSL 3: external pre-shared keys with (EC)DHE, or mutual certificates. Only for this
// folder.
#pragma once

#include <openssl/ssl.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "wan/net/secure/channel.hpp"
#include "wan/net/secure/key.hpp"
#include "wan/net/settings.hpp"

namespace maki::wan {

struct FreeSsl {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

// Certificates are read again where one of their files has changed, since a run may outlive them. Files that cannot be
// used are reported once and tried again later, and the certificates read before stay in use.
class TlsContext final : public SecurityContext {
 public:
  explicit TlsContext(const Security& security);  // keys or certificates

  bool uses_keys() const { return !keys_.empty(); }
  const Key& first_key() const { return keys_.front(); }
  const Key* find_key(const std::string& id) const;
  const std::string& peer_name() const { return security_.peer_name; }
  std::shared_ptr<SSL_CTX> of(Side side) const;  // for a new channel; any thread

 private:
  struct Contexts {
    std::shared_ptr<SSL_CTX> connecting, listening;
  };
  using Stamp = std::array<std::int64_t, 3>;  // of a file: inode, size, time of change in ns
  Contexts of_keys() const;
  Contexts of_certificates() const;
  std::array<Stamp, 3> stamps() const;
  void renew() const;

  Security security_;
  std::vector<Key> keys_;
  mutable std::mutex mutex_;  // of what follows
  mutable std::array<Stamp, 3> stamps_{};
  mutable std::optional<std::array<Stamp, 3>> failed_;  // of files that could not be used, and when
  mutable WallClock::time_point failed_at_;
  mutable Contexts contexts_;
};

// Observations of a connection; OpenSSL's callbacks write them.
struct HandshakeNotes {
  const TlsContext* context = nullptr;
  std::string offered_id;    // the last key id that the peer offered
  const Key* key = nullptr;  // ours with that id
  std::string refused_name;  // in a certificate that failed
  int refused_depth = 0;     // of that one: 0 is the peer's own, above are authorities'
  bool established = false;
  int beside_data = 0;  // records without data since the handshake or the last kDataBetween bytes, and messages in them
  bool too_many() const { return beside_data > kMostBesideData; }

  // A change of keys counts as two. An honest peer changes keys once for each kRekeyBytes.
  static constexpr int kMostBesideData = 40;
};

// Bytes of data after which beside_data begins at 0 again.
inline constexpr std::size_t kDataBetween = 128 << 10;

// Bytes sent after which keys are updated: far below the limit of RFC 8446 (5.5) for AES-GCM with full records.
inline constexpr std::uint64_t kRekeyBytes = std::uint64_t{1} << 36;

std::unique_ptr<Channel> make_tls_channel(std::shared_ptr<const TlsContext> context, Socket socket, Side side,
                                          const std::string& peer_host, std::uint64_t rekey_bytes = kRekeyBytes);

// OpenSSL's reason for the last failure on this thread, as helpful text. `peer`: its name in the message.
SecurityError tls_error(SSL* ssl, const HandshakeNotes& notes, Side side, const std::string& peer);
// The name in a certificate: the first DNS name of the subject alternative names, else the common name, else the first
// address; empty if none.
std::string certificate_name(X509* certificate);

}  // namespace maki::wan
