// For tests: an authority and certificates, made on the spot.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <string>

#include "tests/wan/net/secure/channel_pair.hpp"

namespace maki::wan::test {

struct CertificateFields {
  std::string common_name{};
  std::string alternative{};     // "DNS:site.example" or "IP:127.0.0.1"; empty: none
  long from = -3600, to = 3600;  // seconds from now
};

class Authority {
 public:
  explicit Authority(const TemporaryFolder& folder, const std::string& name) : folder_(folder), name_(name) {
    write_certificate(certificate_, file());
  }

  std::string file() const { return folder_.path(name_ + ".pem"); }
  // A file with its certificate at other times: seconds from now.
  std::string file_of(long from, long to) const {
    const std::string path = folder_.path(name_ + "-dated.pem");
    write_certificate(of_itself(from, to), path);
    return path;
  }
  // Writes NAME.pem and NAME.key, and gives the settings that use them and trust this authority.
  Security issue(const std::string& name, const CertificateFields& fields) {
    const KeyPair key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    Security security;
    security.certificate = folder_.path(name + ".pem");
    security.private_key = folder_.path(name + ".key");
    security.authority = file();
    write_certificate(signed_certificate(key, fields, ++serial_, certificate_, NID_subject_alt_name,
                                         fields.alternative),
                      security.certificate);
    std::FILE* out = private_file(security.private_key);
    EXPECT_EQ(PEM_write_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr), 1);
    std::fclose(out);
    return security;
  }

 private:
  using KeyPair = std::shared_ptr<EVP_PKEY>;
  using Certificate = std::shared_ptr<X509>;

  Certificate of_itself(long from, long to) const {
    return signed_certificate(key_, {.common_name = name_, .from = from, .to = to}, 1, nullptr, NID_basic_constraints,
                              "critical,CA:TRUE");
  }
  // Of `issuer`, or of itself; with an extension where it has a value.
  Certificate signed_certificate(const KeyPair& key, const CertificateFields& fields, long serial,
                                 const Certificate& issuer, int extension, const std::string& value) const {
    const Certificate made(X509_new(), X509_free);
    X509* const certificate = made.get();
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), fields.from);
    X509_gmtime_adj(X509_getm_notAfter(certificate), fields.to);
    X509_set_pubkey(certificate, key.get());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(fields.common_name.c_str()), -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(issuer ? issuer.get() : certificate));
    if (!value.empty()) add_extension(certificate, extension, value);
    EXPECT_GT(X509_sign(certificate, key_.get(), EVP_sha256()), 0);
    return made;
  }
  static void add_extension(X509* certificate, int what, const std::string& value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, what, value.c_str());
    ASSERT_NE(extension, nullptr) << value;
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }
  static std::FILE* private_file(const std::string& path) {
    return ::fdopen(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), "w");
  }
  static void write_certificate(const Certificate& certificate, const std::string& path) {
    std::FILE* file = private_file(path);
    EXPECT_EQ(PEM_write_X509(file, certificate.get()), 1);
    std::fclose(file);
  }

  const TemporaryFolder& folder_;
  const std::string name_;
  const KeyPair key_{EVP_EC_gen("P-256"), EVP_PKEY_free};
  const Certificate certificate_ = of_itself(-3600, 1000000);
  long serial_ = 1;
};

}  // namespace maki::wan::test
