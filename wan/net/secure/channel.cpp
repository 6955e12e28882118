#include "wan/net/secure/channel.hpp"

#include <sys/socket.h>

#include "wan/net/error.hpp"
#include "wan/net/secure/tls.hpp"

namespace maki::wan {

namespace {

class PlainChannel final : public Channel {
 public:
  explicit PlainChannel(Socket socket) : socket_(std::move(socket)) {}

  IoStatus handshake() override { return IoStatus::kDone; }
  IoResult read(std::span<std::byte> buffer) override { return read_some(socket_.descriptor(), buffer); }
  bool buffered() const override { return false; }
  IoResult write(std::span<const std::byte> head, std::span<const std::byte> body) override {
    return write_some(socket_.descriptor(), head, body);
  }
  IoStatus flush() override { return IoStatus::kDone; }
  void finish_writing() override { ::shutdown(socket_.descriptor(), SHUT_WR); }
  int descriptor() const override { return socket_.descriptor(); }
  bool encrypted() const override { return false; }
  const std::string& identity() const override { return nobody_; }

 private:
  Socket socket_;
  std::string nobody_;
};

void check_ways(const Security& security) {
  const bool keys = !security.key_files.empty();
  const bool certificates =
      !security.certificate.empty() || !security.private_key.empty() || !security.authority.empty();
  const int ways = (keys ? 1 : 0) + (certificates ? 1 : 0) + (security.insecure ? 1 : 0);
  if (ways == 0)
    throw SecurityError("no way given to know the peer", "",
                        "give a key file (make one with 'maki wan keygen'), certificates, or insecure = true");
  if (ways > 1)
    throw SecurityError("more than one way given to know the peer",
                        "key files, certificates and insecure exclude each other", "leave the one that both sides use");
  if (certificates && (security.certificate.empty() || security.private_key.empty() || security.authority.empty()))
    throw SecurityError("the certificates are not complete", "", "give all of certificate, private_key and authority");
  if (!security.peer_name.empty() && !certificates)
    throw SecurityError("peer_name is set without certificates", "only a certificate carries a name", "remove it");
}

}  // namespace

std::shared_ptr<const SecurityContext> SecurityContext::make(const Security& security) {
  check_ways(security);
  if (!security.insecure) return std::make_shared<TlsContext>(security);
  log_once(
      LogLevel::kWarning,
      "insecure: paths are neither encrypted nor authenticated; anyone on the way can read and change what they carry");
  return std::make_shared<SecurityContext>(security);
}

std::unique_ptr<Channel> make_channel(std::shared_ptr<const SecurityContext> security, Socket socket, Side side,
                                      const std::string& peer_host) {
  if (!security->encrypted()) return make_plain_channel(std::move(socket));
  return make_tls_channel(std::static_pointer_cast<const TlsContext>(std::move(security)), std::move(socket), side,
                          peer_host);
}

std::unique_ptr<Channel> make_plain_channel(Socket socket) { return std::make_unique<PlainChannel>(std::move(socket)); }

}  // namespace maki::wan
