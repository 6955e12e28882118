// Who is let in: keys and certificates that are right, and all the ways in which they are not.
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/wan/net/secure/certificates.hpp"
#include "tests/wan/net/secure/channel_pair.hpp"
#include "wan/net/path/wire.hpp"
#include "wan/net/secure/key.hpp"
#include "wan/net/secure/tls.hpp"

namespace maki::wan {
namespace {

using Context = std::shared_ptr<const SecurityContext>;

struct Meeting {
  test::Outcome connecting, listening;
  std::string connecting_sees, listening_sees;  // identities
};

// After its own part is done a side with a certificate learns of its refusal at the first read.
void read_refusal(Channel& channel, test::Outcome& outcome) {
  if (!outcome.done) return;
  const test::Reading reading = test::read_some(channel);
  outcome = {.done = false, .error = reading.error};
}

Meeting meet(const Context& connecting, const Context& listening, const std::string& host = "site.example") {
  auto [a, b] = test::socket_pair();
  auto one = make_channel(connecting, std::move(a), Side::kConnecting, host);
  auto other = make_channel(listening, std::move(b), Side::kListening);
  Meeting meeting;
  std::tie(meeting.connecting, meeting.listening) = test::shake_hands(*one, *other);
  meeting.connecting_sees = one->identity();
  meeting.listening_sees = other->identity();
  if (!meeting.listening.done) {
    other.reset();
    read_refusal(*one, meeting.connecting);
  }
  return meeting;
}

Meeting meet(const Security& connecting, const Security& listening, const std::string& host = "site.example") {
  return meet(SecurityContext::make(connecting), SecurityContext::make(listening), host);
}

// What the two sides are told.
Meeting expect_refused(const Security& connecting, const Security& listening, const std::string& said_there,
                       const std::string& said_here, const std::string& host = "site.example") {
  const Meeting meeting = meet(connecting, listening, host);
  EXPECT_TRUE(test::says(meeting.listening.error, said_there));
  EXPECT_TRUE(test::says(meeting.connecting.error, said_here));
  return meeting;
}

class Peers : public testing::Test {
 protected:
  // Our channel at the listening side against a client of OpenSSL's own, with whatever it is set up to.
  std::string refuse_client(const Security& listening, SSL_CTX* client) {
    auto [a, b] = test::socket_pair();
    auto channel = make_channel(SecurityContext::make(listening), std::move(b), Side::kListening);
    SSL* ssl = SSL_new(client);
    SSL_set_fd(ssl, a.descriptor());
    test::Outcome outcome;
    for (int i = 0; i < 300 && outcome.error.empty(); ++i) {
      SSL_connect(ssl);
      outcome = test::shake_alone(*channel, 100);
    }
    EXPECT_FALSE(outcome.done);
    EXPECT_EQ(channel->identity(), "");
    channel.reset();
    char byte = 0;
    EXPECT_LE(SSL_read(ssl, &byte, 1), 0);
    SSL_free(ssl);
    SSL_CTX_free(client);
    return outcome.error;
  }
  std::string refuse_bytes(const Security& listening, const std::string& bytes) {
    auto [a, b] = test::socket_pair();
    auto channel = make_channel(SecurityContext::make(listening), std::move(b), Side::kListening);
    EXPECT_EQ(::send(a.descriptor(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return test::shake_alone(*channel, test::kPatience).error;
  }

  test::TemporaryFolder folder_;
  test::Authority authority_{folder_, "authority"};
};

TEST_F(Peers, ListenerKnowsThemByTheirKeys) {
  const Security first = test::new_key(folder_, "a.key"), second = test::new_key(folder_, "b.key");
  const Meeting meeting = meet(second, test::both_of(first, second));
  EXPECT_TRUE(meeting.connecting.done && meeting.listening.done) << meeting.connecting.error << meeting.listening.error;
  const std::string id = read_key(second.key_files[0]).id;
  EXPECT_EQ(meeting.connecting_sees, id);
  EXPECT_EQ(meeting.listening_sees, id);
}

TEST_F(Peers, WrongKeyIsRefused) {
  const Security key = test::new_key(folder_, "a.key");
  Key forged = Key::make();
  forged.id = read_key(key.key_files[0]).id;
  write_key(forged, folder_.path("forged.key"));
  const Security wrong{.key_files = {folder_ / "forged.key"}};
  for (const auto& [one, other] : {std::pair(key, wrong), std::pair(wrong, key)}) {
    const Meeting meeting = expect_refused(one, other, "wrong key", "wrong key");
    EXPECT_EQ(meeting.connecting_sees + meeting.listening_sees, "");
  }
}

TEST_F(Peers, UnknownKeyIsRefused) {
  const Security one = test::new_key(folder_, "a.key"), other = test::new_key(folder_, "b.key");
  const std::string id = read_key(one.key_files[0]).id;
  expect_refused(one, other, id + " is not among ours", "does not know our key " + id);
}

TEST_F(Peers, NoKeyIsRefused) {
  const Security key = test::new_key(folder_, "a.key");
  EXPECT_TRUE(test::says(refuse_client(key, SSL_CTX_new(TLS_client_method())), "offers no key"));
  SSL_CTX* old = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_max_proto_version(old, TLS1_2_VERSION);
  EXPECT_TRUE(test::says(refuse_client(key, old), "no TLS 1.3"));
  // Suites of another hash only.
  SSL_CTX* other_suites = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_ciphersuites(other_suites, "TLS_AES_256_GCM_SHA384");
  EXPECT_NE(refuse_client(key, other_suites), "");
}

TEST_F(Peers, PlainBytesAreRefused) {
  const Security key = test::new_key(folder_, "a.key");
  const auto hello = encode(Hello{});
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(200, '\0'), std::string(200, 'x'),
        std::string(reinterpret_cast<const char*>(hello.data()), hello.size()), std::string("SSH-2.0-OpenSSH_9\r\n")})
    EXPECT_TRUE(test::says(refuse_bytes(key, bytes), "speaks no TLS")) << bytes;
}

TEST_F(Peers, CertificatesMeet) {
  const Security amsterdam =
      authority_.issue("amsterdam", {.common_name = "x", .alternative = "DNS:amsterdam.example"});
  const Security tokyo = authority_.issue("tokyo", {.common_name = "tokyo.example"});
  const Security numbered = authority_.issue("numbered", {.common_name = "by number", .alternative = "IP:127.0.0.1"});
  Meeting meeting = meet(amsterdam, tokyo, "tokyo.example");
  EXPECT_TRUE(meeting.connecting.done && meeting.listening.done) << meeting.connecting.error << meeting.listening.error;
  EXPECT_EQ(meeting.connecting_sees, "tokyo.example");
  EXPECT_EQ(meeting.listening_sees, "amsterdam.example");
  meeting = meet(tokyo, numbered, "127.0.0.1");
  EXPECT_TRUE(meeting.connecting.done) << meeting.connecting.error;
  EXPECT_EQ(meeting.connecting_sees, "by number");
  const Security nameless = authority_.issue("nameless", {.common_name = "", .alternative = "IP:127.0.0.1"});
  EXPECT_EQ(meet(tokyo, nameless, "127.0.0.1").connecting_sees, "127.0.0.1");
  Security by_name = tokyo;
  by_name.peer_name = "amsterdam.example";
  EXPECT_TRUE(meet(by_name, amsterdam, "10.0.0.1").connecting.done);
}

TEST_F(Peers, CertificateOfAnotherHostIsRefused) {
  const Security site = authority_.issue("site", {.common_name = "x", .alternative = "DNS:site.example"});
  expect_refused(site, site, "refuses our certificate", "certificate is for 'site.example'", "elsewhere.example");
  EXPECT_TRUE(test::says(meet(site, site, "127.0.0.1").connecting.error, "certificate is for 'site.example'"));
  auto [a, b] = test::socket_pair();
  EXPECT_THROW(make_channel(SecurityContext::make(site), std::move(a), Side::kConnecting, ""), SecurityError);
}

// Any certificate of the authority gets in only where no name is asked for.
TEST_F(Peers, ListenersAskForANameToo) {
  const Security site = authority_.issue("site", {.common_name = "x", .alternative = "DNS:site.example"});
  const Security tokyo = authority_.issue("tokyo", {.common_name = "x", .alternative = "DNS:tokyo.example"});
  Security asking = site;
  asking.peer_name = "tokyo.example";
  const Meeting good = meet(tokyo, asking);
  EXPECT_TRUE(good.connecting.done && good.listening.done) << good.connecting.error << good.listening.error;
  expect_refused(site, asking, "certificate is for 'site.example'", "refuses our certificate");
}

TEST_F(Peers, CertificateOfAnotherAuthorityIsRefused) {
  test::Authority ours(folder_, "ours"), theirs(folder_, "theirs");
  const Security one = ours.issue("one", {.common_name = "site.example"});
  const Security other = theirs.issue("other", {.common_name = "site.example"});
  EXPECT_TRUE(test::says(meet(one, other).connecting.error, "authority that we do not know"));
  // Only the listener minds.
  Security trusting = one;
  trusting.authority = theirs.file();
  expect_refused(trusting, other, "authority that we do not know", "does not know the authority of our certificate");
}

// Our own side does not even start with an expired certificate, so it is slipped in behind its back.
TEST_F(Peers, ExpiredCertificateIsRefused) {
  const Security good = authority_.issue("good", {.common_name = "site.example"});
  for (const test::CertificateFields& fields :
       {test::CertificateFields{.common_name = "site.example", .from = -7200, .to = -3600},
        test::CertificateFields{.common_name = "site.example", .from = 3600, .to = 7200}}) {
    const Security bad = authority_.issue("bad", fields);
    EXPECT_THROW(SecurityContext::make(bad), SecurityError);
    const Context context = SecurityContext::make(good);
    for (const Side side : {Side::kConnecting, Side::kListening}) {
      SSL_CTX* inside = static_cast<const TlsContext&>(*context).of(side).get();
      ASSERT_EQ(SSL_CTX_use_certificate_chain_file(inside, bad.certificate.c_str()), 1);
      ASSERT_EQ(SSL_CTX_use_PrivateKey_file(inside, bad.private_key.c_str(), SSL_FILETYPE_PEM), 1);
    }
    const char* part = fields.to < 0 ? "has expired" : "not valid yet";
    Meeting meeting = meet(SecurityContext::make(good), context);
    EXPECT_TRUE(test::says(meeting.connecting.error, part));
    EXPECT_FALSE(meeting.listening.done);
    meeting = meet(context, SecurityContext::make(good));
    EXPECT_TRUE(test::says(meeting.listening.error, part));
    EXPECT_TRUE(test::says(meeting.connecting.error,
                           fields.to < 0 ? "our certificate has expired" : "refuses our certificate"));
  }
}

// As above, slipped in: a run outlives the dates of its authority.
TEST_F(Peers, ExpiredAuthorityIsNotTakenForThePeer) {
  const Security good = authority_.issue("good", {.common_name = "site.example"});
  for (const long from : {-7200l, 3600l}) {
    const std::string file = authority_.file_of(from, from + 3600);
    const char* part = from < 0 ? "has expired" : "is not valid yet";
    Security bad = good;
    bad.authority = file;
    const std::string refused = test::error_of<SecurityError>([&] { SecurityContext::make(bad); });
    EXPECT_TRUE(test::says(refused, "cannot use authority " + file));
    EXPECT_TRUE(test::says(refused, from < 0 ? "it has expired" : "it is not valid yet"));
    const Context context = SecurityContext::make(good);
    for (const Side side : {Side::kConnecting, Side::kListening}) {
      SSL_CTX* inside = static_cast<const TlsContext&>(*context).of(side).get();
      SSL_CTX_set_cert_store(inside, X509_STORE_new());
      ASSERT_EQ(SSL_CTX_load_verify_file(inside, file.c_str()), 1);
    }
    const std::string said = "the authority's certificate ('authority') " + std::string(part);
    EXPECT_TRUE(test::says(meet(context, SecurityContext::make(good)).connecting.error, said));
    const Meeting meeting = meet(SecurityContext::make(good), context);
    EXPECT_TRUE(test::says(meeting.listening.error, said));
    EXPECT_TRUE(
        test::says(meeting.connecting.error, from < 0 ? "has expired, or its authority's" : "refuses our certificate"));
  }
}

TEST_F(Peers, AuthoritiesOfTheirTimeSufficeBesideOlderOnes) {
  Security site = authority_.issue("site", {.common_name = "site.example"});
  std::ofstream both(folder_.path("both.pem"));
  for (const std::string& file : {authority_.file_of(-7200, -3600), authority_.file()})
    both << std::ifstream(file).rdbuf();
  both.close();
  site.authority = folder_.path("both.pem");
  const Meeting meeting = meet(site, site);
  EXPECT_TRUE(meeting.connecting.done && meeting.listening.done) << meeting.connecting.error << meeting.listening.error;
}

void replace(const std::string& by, const std::string& file) {
  std::filesystem::copy_file(by, file + ".part");
  std::filesystem::permissions(file + ".part", std::filesystem::perms{0600});
  std::filesystem::rename(file + ".part", file);
}

// A long run renews its certificates, and even their authority, by new files in place of the old ones.
TEST_F(Peers, ReplacedCertificatesAreReadAnew) {
  test::Authority old(folder_, "old"), fresh(folder_, "fresh");
  const Security first = old.issue("site", {.common_name = "site.example"}),
                 second = fresh.issue("new", {.common_name = "site.example"});
  const Context context = SecurityContext::make(first), renewed = SecurityContext::make(second);
  auto [a, b] = test::socket_pair();
  const auto near = make_channel(context, std::move(a), Side::kConnecting, "site.example"),
             far = make_channel(context, std::move(b), Side::kListening);
  EXPECT_TRUE(test::shake_hands(*near, *far).first.done);
  EXPECT_FALSE(meet(context, renewed).connecting.done);

  replace(second.certificate, first.certificate);  // half of it: the key is still the old one
  const Meeting meeting = meet(context, context);
  EXPECT_TRUE(meeting.connecting.done) << meeting.connecting.error;
  replace(second.private_key, first.private_key);
  replace(second.authority, first.authority);
  for (const auto& [connecting, listening] : {std::pair(context, renewed), std::pair(renewed, context)}) {
    const Meeting now = meet(connecting, listening);
    EXPECT_TRUE(now.connecting.done && now.listening.done) << now.connecting.error << now.listening.error;
  }
  EXPECT_FALSE(meet(SecurityContext::make(old.issue("late", {.common_name = "site.example"})), context).listening.done);
  const auto bytes = test::pattern(1000, 3);
  EXPECT_TRUE(test::same(test::carry(*near, *far, bytes, {}), bytes));  // what stands goes on
}

TEST_F(Peers, ACertificateThatBeginsLaterIsTakenThen) {
  const test::Log log;
  const Security site = authority_.issue("site", {.common_name = "site.example"});
  const Context context = SecurityContext::make(site);
  const Security next = authority_.issue("next", {.common_name = "site.example", .from = 3});
  replace(next.certificate, site.certificate);
  replace(next.private_key, site.private_key);
  EXPECT_TRUE(test::comes_true([&] {
    EXPECT_TRUE(meet(context, context).connecting.done);
    return log.has("has been read anew");
  }));
  EXPECT_LE(std::ranges::count_if(log.all(), [](const auto& line) { return line.find("stays in use") < line.size(); }),
            1);
}

TEST_F(Peers, ClientWithoutCertificateIsRefused) {
  const Security site = authority_.issue("site", {.common_name = "site.example"});
  EXPECT_TRUE(test::says(refuse_client(site, SSL_CTX_new(TLS_client_method())), "shows no certificate"));
}

TEST_F(Peers, BadCertificateFilesAreRefusedAtOnce) {
  const Security site = authority_.issue("site", {.common_name = "a"}),
                 other = authority_.issue("other", {.common_name = "b"});
  const auto refusal = [](const Security& security) {
    return test::error_of<SecurityError>([&] { SecurityContext::make(security); });
  };
  Security bad = site;
  bad.private_key = other.private_key;
  EXPECT_TRUE(test::says(refusal(bad), "key of the certificate"));
  bad = site;
  bad.authority = folder_.path("none");
  EXPECT_TRUE(test::says(refusal(bad), folder_.path("none")));
  bad = site;
  bad.certificate = site.private_key;
  EXPECT_TRUE(test::says(refusal(bad), "cannot use certificate"));
  ::chmod(site.private_key.c_str(), 0640);
  EXPECT_TRUE(test::says(refusal(site), "chmod 600"));
}

// Somebody between the two changes one bit of what is encrypted.
TEST_F(Peers, ChangedBytesAreNoticed) {
  const auto context = SecurityContext::make(test::new_key(folder_, "a.key"));
  auto [a, middle_a] = test::socket_pair();
  auto [middle_b, b] = test::socket_pair();
  const auto one = make_channel(context, std::move(a), Side::kConnecting),
             other = make_channel(context, std::move(b), Side::kListening);
  const auto pass = [](const Socket& from, const Socket& to, int flip, int patience = test::kPatience) {
    char bytes[4096];
    test::ready(from.descriptor(), POLLIN, patience);
    const ssize_t n = ::recv(from.descriptor(), bytes, sizeof bytes, 0);
    if (n <= 0) return;
    if (flip >= 0 && flip < n) bytes[flip] ^= 1;
    ASSERT_EQ(::send(to.descriptor(), bytes, static_cast<std::size_t>(n), MSG_NOSIGNAL), n);
  };
  bool done = false;
  for (int i = 0; i < 100 && !done; ++i) {
    done = one->handshake() == IoStatus::kDone;
    pass(middle_a, middle_b, -1, 20);
    done = other->handshake() == IoStatus::kDone && done;
    pass(middle_b, middle_a, -1, 20);
  }
  ASSERT_TRUE(done);
  const auto block = test::pattern(1000, 1);
  EXPECT_EQ(one->write({}, block).bytes, block.size());
  pass(middle_a, middle_b, -1);
  EXPECT_EQ(test::read_some(*other).bytes, block);
  one->write({}, block);
  pass(middle_a, middle_b, 500);
  EXPECT_TRUE(test::says(test::read_some(*other).error, "does not decrypt"));
  EXPECT_THROW(other->read(std::span(std::vector<std::byte>(10).data(), 10)), SecurityError) << "and stays so";
}

}  // namespace
}  // namespace maki::wan
