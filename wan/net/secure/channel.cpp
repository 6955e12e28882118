#include "wan/net/secure/channel.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "wan/net/error.hpp"
#include "wan/net/secure/tls.hpp"

namespace maki::wan {

// ---- plain ---------------------------------------------------------------------------------------------------------

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

namespace {

constexpr std::size_t kRecord = SSL3_RT_MAX_PLAIN_LENGTH;  // 16 kB
constexpr std::size_t kRecordRoom = kRecord + 1024;        // with header and tag, and a key update before it
constexpr std::size_t kSmallOut = 8 << 10;                 // enough for a handshake
constexpr std::size_t kFullOut = 8 * kRecordRoom;          // records written to the kernel in one call
constexpr std::size_t kReadAhead = 128 << 10;              // records read from the kernel in one call

class TlsChannel final : public Channel {
 public:
  TlsChannel(std::shared_ptr<const TlsContext> context, Socket socket, Side side, const std::string& peer_host,
             std::uint64_t rekey_bytes);

  IoStatus handshake() override;
  IoResult read(std::span<std::byte> buffer) override;
  bool buffered() const override { return more_to_read_; }
  IoResult write(std::span<const std::byte> head, std::span<const std::byte> body) override;
  IoStatus flush() override;
  void finish_writing() override;
  int descriptor() const override { return socket_.descriptor(); }
  bool encrypted() const override { return true; }
  const std::string& identity() const override { return identity_; }

 private:
  static const BIO_METHOD* bio_method();
  static int bio_write(BIO* bio, const char* data, std::size_t size, std::size_t* written);
  static int bio_read(BIO* bio, char* data, std::size_t size, std::size_t* got);
  static long bio_control(BIO* bio, int command, long, void*);

  void check_name_of_peer();
  void finish_handshake();
  void reserve_out(std::size_t bytes);
  bool encrypt(std::span<const std::byte> plain);
  std::span<const std::byte> next_record(std::span<const std::byte> head, std::span<const std::byte> body,
                                         std::size_t taken);
  void count_data(std::size_t bytes);
  IoStatus after_failed_read(int error);
  std::string peer() const;

  std::shared_ptr<const TlsContext> context_;
  Socket socket_;
  Side side_;
  std::string host_, identity_;
  HandshakeNotes notes_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
  std::uint64_t rekey_bytes_, since_rekey_ = 0;
  std::size_t since_counted_ = 0;     // data read since records without data were counted anew
  std::unique_ptr<std::byte[]> out_;  // encrypted, not yet in the kernel: [out_begin_, out_end_)
  std::size_t out_size_ = 0, out_begin_ = 0, out_end_ = 0;
  bool more_to_read_ = false;
  bool broken_ = false;                     // the socket ended or failed
  std::unique_ptr<SecurityError> failure_;  // found after bytes that must be delivered first
};

// ---- between OpenSSL and the socket: out through our buffer, in directly into OpenSSL's ----------------------------

const BIO_METHOD* TlsChannel::bio_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "maki channel");
    BIO_meth_set_write_ex(made, bio_write);
    BIO_meth_set_read_ex(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  return method;
}

long TlsChannel::bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return static_cast<TlsChannel*>(BIO_get_data(bio))->broken_ ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

int TlsChannel::bio_write(BIO* bio, const char* data, std::size_t size, std::size_t* written) {
  auto& self = *static_cast<TlsChannel*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (self.out_end_ + size > self.out_size_) self.reserve_out(self.out_end_ + size <= kSmallOut ? kSmallOut : kFullOut);
  if (self.out_end_ + size > self.out_size_) {
    BIO_set_retry_write(bio);
    return 0;
  }
  std::memcpy(self.out_.get() + self.out_end_, data, size);
  self.out_end_ += size;
  *written = size;
  return 1;
}

int TlsChannel::bio_read(BIO* bio, char* data, std::size_t size, std::size_t* got) {
  auto& self = *static_cast<TlsChannel*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  *got = 0;
  if (self.broken_) return 0;
  const IoResult result = read_some(self.socket_.descriptor(), std::as_writable_bytes(std::span(data, size)));
  if (result.status == IoStatus::kDone) {
    *got = result.bytes;
    return 1;
  }
  if (result.status == IoStatus::kWantRead)
    BIO_set_retry_read(bio);
  else
    self.broken_ = true;
  return 0;
}

void TlsChannel::reserve_out(std::size_t bytes) {
  if (bytes <= out_size_) return;
  auto larger = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::copy(out_.get() + out_begin_, out_.get() + out_end_, larger.get());
  out_ = std::move(larger);
  out_size_ = bytes;
  out_end_ -= std::exchange(out_begin_, 0);
}

// ---- handshake -----------------------------------------------------------------------------------------------------

TlsChannel::TlsChannel(std::shared_ptr<const TlsContext> context, Socket socket, Side side,
                       const std::string& peer_host, std::uint64_t rekey_bytes)
    : context_(std::move(context)), socket_(std::move(socket)), side_(side), host_(peer_host),
      ssl_(SSL_new(context_->of(side).get())), rekey_bytes_(rekey_bytes) {
  notes_.context = context_.get();
  BIO* bio = ssl_ ? BIO_new(bio_method()) : nullptr;
  if (bio == nullptr)
    throw SecurityError("OpenSSL cannot make a TLS connection", "", "check the memory that this process may use");
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);  // one for both directions: OpenSSL takes the single reference
  SSL_set_app_data(ssl_.get(), &notes_);
  if (side == Side::kListening) {
    SSL_set_accept_state(ssl_.get());
    if (!context_->peer_name().empty()) check_name_of_peer();
  } else {
    SSL_set_connect_state(ssl_.get());
    if (!context_->uses_keys()) check_name_of_peer();
  }
}

// The certificate must carry the name given by the user, or else, when connecting, the host's.
void TlsChannel::check_name_of_peer() {
  const std::string& name = context_->peer_name().empty() ? host_ : context_->peer_name();
  if (name.empty())
    throw SecurityError("no name to check the peer's certificate against", "",
                        "set peer_name to the name in the certificate");
  X509_VERIFY_PARAM* parameters = SSL_get0_param(ssl_.get());
  X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  in6_addr any;
  const bool address = ::inet_pton(AF_INET, name.c_str(), &any) == 1 || ::inet_pton(AF_INET6, name.c_str(), &any) == 1;
  const int good = address ? X509_VERIFY_PARAM_set1_ip_asc(parameters, name.c_str())
                           : X509_VERIFY_PARAM_set1_host(parameters, name.c_str(), name.size());
  if (good != 1)
    throw SecurityError("cannot check the peer's certificate", "'" + name + "' is no host name", "set peer_name");
  if (!address && side_ == Side::kConnecting) SSL_set_tlsext_host_name(ssl_.get(), name.c_str());
}

std::string TlsChannel::peer() const { return host_.empty() ? peer_address(socket_.descriptor()).text() : host_; }

IoStatus TlsChannel::handshake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_.get());
  const int error = done == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), done);
  if (error == SSL_ERROR_SSL && !broken_) {
    const SecurityError why = tls_error(ssl_.get(), notes_, side_, peer());
    flush();  // sends the alert to the peer
    throw why;
  }
  const IoStatus sent = flush();
  if (error == SSL_ERROR_NONE) {
    if (sent == IoStatus::kDone) finish_handshake();
    return sent;
  }
  if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return IoStatus::kClosed;
  return sent == IoStatus::kDone ? IoStatus::kWantRead : sent;
}

void TlsChannel::finish_handshake() {
  if (context_->uses_keys()) {
    // Without the key there would have been a certificate, which would have failed. Nothing else may pass either.
    if (SSL_session_reused(ssl_.get()) != 1 || notes_.key == nullptr)
      throw SecurityError(fmt::format("no encrypted connection with {}", peer()), "the pre-shared key was not used",
                          "");
    identity_ = notes_.key->id;
  } else {
    X509* certificate = SSL_get0_peer_certificate(ssl_.get());
    if (certificate == nullptr || SSL_get_verify_result(ssl_.get()) != X509_V_OK)
      throw SecurityError(fmt::format("no encrypted connection with {}", peer()), "the peer shows no valid certificate",
                          "");
    identity_ = certificate_name(certificate);
    if (identity_.empty())
      throw SecurityError(fmt::format("no encrypted connection with {}", peer()),
                          "the peer's certificate carries no name",
                          "it needs a subject alternative name or a common name");
  }
  notes_.established = true;
  SSL_set_default_read_buffer_len(ssl_.get(), kReadAhead);
  more_to_read_ = SSL_has_pending(ssl_.get()) == 1;
}

// ---- reading -------------------------------------------------------------------------------------------------------

IoResult TlsChannel::read(std::span<std::byte> buffer) {
  if (failure_) throw SecurityError(*failure_);
  std::size_t total = 0;
  while (total < buffer.size()) {
    std::size_t got = 0;
    ERR_clear_error();
    if (SSL_read_ex(ssl_.get(), buffer.data() + total, buffer.size() - total, &got) == 1) {
      total += got;
      count_data(got);
      continue;
    }
    const IoStatus status = after_failed_read(SSL_get_error(ssl_.get(), 0));
    if (total > 0) return {total, IoStatus::kDone};
    if (failure_) throw SecurityError(*failure_);
    return {0, status};
  }
  more_to_read_ = SSL_has_pending(ssl_.get()) == 1;
  return {total, IoStatus::kDone};
}

void TlsChannel::count_data(std::size_t bytes) {
  since_counted_ += bytes;
  if (since_counted_ < kDataBetween || notes_.too_many()) return;
  notes_.beside_data = 0;
  since_counted_ = 0;
}

IoStatus TlsChannel::after_failed_read(int error) {
  more_to_read_ = false;
  if (notes_.too_many()) error = SSL_ERROR_SSL;
  if (error == SSL_ERROR_WANT_READ) {
    // The handshake's small buffer is freed: from now on one large one is kept.
    if (SSL_has_pending(ssl_.get()) == 0) SSL_clear_mode(ssl_.get(), SSL_MODE_RELEASE_BUFFERS);
    return IoStatus::kWantRead;
  }
  if (error == SSL_ERROR_WANT_WRITE) return IoStatus::kWantWrite;
  more_to_read_ = true;  // the end, or the error, at the next call
  if (error == SSL_ERROR_SSL && !broken_) {
    failure_ = std::make_unique<SecurityError>(tls_error(ssl_.get(), notes_, side_, peer()));
    flush();  // sends the alert to the peer
  }
  return IoStatus::kClosed;
}

// ---- writing -------------------------------------------------------------------------------------------------------

bool TlsChannel::encrypt(std::span<const std::byte> plain) {
  ERR_clear_error();
  if (since_rekey_ >= rekey_bytes_ && SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1) since_rekey_ = 0;
  std::size_t written = 0;
  if (SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &written) != 1) return false;
  since_rekey_ += plain.size();
  return true;
}

// The contents of the next record: the head shares one with the begin of the body; the rest is read in place.
std::span<const std::byte> TlsChannel::next_record(std::span<const std::byte> head, std::span<const std::byte> body,
                                                   std::size_t taken) {
  if (taken >= head.size()) {
    const auto rest = body.subspan(taken - head.size());
    return rest.first(std::min(rest.size(), kRecord));
  }
  thread_local std::array<std::byte, kRecord> staging;
  const auto first = head.subspan(taken, std::min(head.size() - taken, kRecord));
  const auto second = body.first(std::min(body.size(), kRecord - first.size()));
  std::copy(second.begin(), second.end(), std::copy(first.begin(), first.end(), staging.begin()));
  return std::span(staging).first(first.size() + second.size());
}

IoResult TlsChannel::write(std::span<const std::byte> head, std::span<const std::byte> body) {
  // Earlier data go first: at most one buffer is encrypted ahead of the network.
  if (const IoStatus before = flush(); before != IoStatus::kDone) return {0, before};
  const std::size_t all = head.size() + body.size();
  if (all > kSmallOut) reserve_out(kFullOut);
  std::size_t taken = 0;
  while (taken < all) {
    while (taken < all && out_end_ + kRecordRoom <= std::max(out_size_, kFullOut)) {
      const auto record = next_record(head, body, taken);
      if (!encrypt(record)) return {taken, IoStatus::kClosed};
      taken += record.size();
    }
    const IoStatus sent = flush();
    if (sent == IoStatus::kClosed) return {taken, sent};
    if (sent == IoStatus::kWantWrite) return {taken, taken == all ? IoStatus::kDone : IoStatus::kWantWrite};
  }
  return {taken, IoStatus::kDone};
}

IoStatus TlsChannel::flush() {
  const IoResult sent =
      write_some(socket_.descriptor(), std::span<const std::byte>(out_.get() + out_begin_, out_end_ - out_begin_));
  out_begin_ += sent.bytes;
  if (sent.status != IoStatus::kDone) return sent.status;
  out_begin_ = out_end_ = 0;
  return IoStatus::kDone;
}

void TlsChannel::finish_writing() {
  ERR_clear_error();
  if (SSL_in_init(ssl_.get()) == 0) SSL_shutdown(ssl_.get());
  flush();
  ::shutdown(socket_.descriptor(), SHUT_WR);
}

}  // namespace

std::unique_ptr<Channel> make_tls_channel(std::shared_ptr<const TlsContext> context, Socket socket, Side side,
                                          const std::string& peer_host, std::uint64_t rekey_bytes) {
  return std::make_unique<TlsChannel>(std::move(context), std::move(socket), side, peer_host, rekey_bytes);
}

}  // namespace maki::wan
