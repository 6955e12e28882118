// A connected socket that carries bytes either under TLS 1.3 or plain, without ever blocking.
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

// What is made once for many channels: keys and certificates are read and checked here, not when a peer calls.
class SecurityContext {
 public:
  virtual ~SecurityContext() = default;
  // Throws SecurityError: nothing or more than one way given, bad files. Logs a warning for insecure.
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
  virtual ~Channel() = default;  // closes the socket; what the kernel holds is still sent

  // Until kDone. Throws SecurityError where the peer has no right key or certificate.
  virtual IoStatus handshake() = 0;

  // As much as there is, at most the buffer. Throws SecurityError where the peer's records do not decrypt.
  virtual IoResult read(std::span<std::byte> buffer) = 0;
  // True while read() would give bytes though the socket may not be readable.
  virtual bool buffered() const = 0;

  // Takes bytes of `head`, then of `body` (one system call where it can be; both may be empty). What was taken
  // (result.bytes, over both) need not stay: the kernel or the channel holds it. kWantWrite: no more fits now (bytes
  // may be > 0). kDone: all was taken.
  virtual IoResult write(std::span<const std::byte> head, std::span<const std::byte> body) = 0;
  // Gives the kernel what the channel still holds: kDone when that is nothing.
  virtual IoStatus flush() = 0;
  // No more will be written (TLS close_notify, then the socket's write side). After flush() said kDone.
  virtual void finish_writing() = 0;

  virtual int descriptor() const = 0;
  virtual bool encrypted() const = 0;
  virtual const std::string& identity()
      const = 0;  // of the peer, after the handshake: key id or certificate name; empty when plain
};

// `peer_host`: the name to check a certificate against where Security::peer_name is empty.
std::unique_ptr<Channel> make_channel(std::shared_ptr<const SecurityContext> security, Socket socket, Side side,
                                      const std::string& peer_host = "");
std::unique_ptr<Channel> make_plain_channel(Socket socket);

}  // namespace maki::wan
