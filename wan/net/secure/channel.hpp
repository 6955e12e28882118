// A connected socket that carries bytes under TLS 1.3 or in plain, never blocking.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "wan/net/error.hpp"
#include "wan/net/secure/key.hpp"
#include "wan/net/settings.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan {

// Shared by many channels: keys and certificates are read and checked here, not when a peer calls; certificates that
// are replaced, at the next call (secure/tls.hpp).
class SecurityContext {
 public:
  virtual ~SecurityContext() = default;
  // Throws SecurityError: none or more than one method given, bad files. Logs a warning for insecure.
  static std::shared_ptr<const SecurityContext> make(const Security& security);
  explicit SecurityContext(const Security& security)
      : encrypted_(!security.insecure), named_(!security.own_name.empty()), party_(party_of(security.own_name)) {}
  bool encrypted() const { return encrypted_; }  // a TlsContext (secure/tls.hpp)
  const Party& party() const { return party_; }  // who we are
  bool named() const { return named_; }          // by Security::own_name

 private:
  bool encrypted_, named_;
  Party party_;
};

enum class Side { kConnecting, kListening };

class Channel {
 public:
  virtual ~Channel() = default;  // closes the socket; data in the kernel are still sent

  // To be called until kDone. Throws SecurityError if the peer has no valid key or certificate.
  virtual IoStatus handshake() = 0;

  // Reads what is available, at most the buffer. Throws SecurityError if the peer's records do not decrypt.
  virtual IoResult read(std::span<std::byte> buffer) = 0;
  // Whether read() would return bytes although the socket may not be readable.
  virtual bool buffered() const = 0;

  // Writes `head`, then `body` (in one system call where possible; both may be empty). Written bytes (result.bytes,
  // over both) are held by the kernel or the channel and need not stay. kWantWrite: no more fits now (bytes may be >
  // 0). kDone: all was written.
  virtual IoResult write(std::span<const std::byte> head, std::span<const std::byte> body) = 0;
  // Passes bytes held by the channel to the kernel: kDone when none are left.
  virtual IoStatus flush() = 0;
  // No more will be written (TLS close_notify, then shutdown of the socket). Only after flush() gave kDone.
  virtual void finish_writing() = 0;

  virtual int descriptor() const = 0;
  virtual bool encrypted() const = 0;
  // Of the peer, after the handshake: key id or certificate name; empty when plain.
  virtual const std::string& identity() const = 0;
};

// `peer_host`: the name to check a certificate against if Security::peer_name is empty.
std::unique_ptr<Channel> make_channel(std::shared_ptr<const SecurityContext> security, Socket socket, Side side,
                                      const std::string& peer_host = "");
std::unique_ptr<Channel> make_plain_channel(Socket socket);

}  // namespace maki::wan
