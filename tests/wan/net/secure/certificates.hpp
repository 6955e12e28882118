// For tests: an authority and certificates, made on the spot.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
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
  explicit Authority(const TemporaryFolder& folder, const std::string& name)
      : folder_(folder), name_(name), key_(EVP_EC_gen("P-256")), certificate_(of_itself(-3600, 1000000)) {
    write_certificate(certificate_, file());
  }
  ~Authority() {
    X509_free(certificate_);
    EVP_PKEY_free(key_);
  }
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  std::string file() const { return folder_.path(name_ + ".pem"); }
  // A file with its certificate at other times: seconds from now.
  std::string file_of(long from, long to) const {
    X509* dated = of_itself(from, to);
    const std::string path = folder_.path(name_ + "-dated.pem");
    write_certificate(dated, path);
    X509_free(dated);
    return path;
  }
  // Writes NAME.pem and NAME.key, and gives the settings that use them and trust this authority.
  Security issue(const std::string& name, const CertificateFields& fields) {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = unsigned_certificate(key, fields, ++serial_);
    X509_set_issuer_name(certificate, X509_get_subject_name(certificate_));
    if (!fields.alternative.empty()) add_extension(certificate, NID_subject_alt_name, fields.alternative);
    EXPECT_GT(X509_sign(certificate, key_, EVP_sha256()), 0);
    Security security;
    security.certificate = folder_.path(name + ".pem");
    security.private_key = folder_.path(name + ".key");
    security.authority = file();
    write_certificate(certificate, security.certificate);
    std::FILE* out = private_file(security.private_key);
    EXPECT_EQ(PEM_write_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr), 1);
    std::fclose(out);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return security;
  }

 private:
  X509* of_itself(long from, long to) const {
    X509* certificate = unsigned_certificate(key_, {.common_name = name_, .from = from, .to = to}, 1);
    X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
    add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE");
    EXPECT_GT(X509_sign(certificate, key_, EVP_sha256()), 0);
    return certificate;
  }
  static X509* unsigned_certificate(EVP_PKEY* key, const CertificateFields& fields, long serial) {
    X509* certificate = X509_new();
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), fields.from);
    X509_gmtime_adj(X509_getm_notAfter(certificate), fields.to);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(fields.common_name.c_str()), -1, -1, 0);
    return certificate;
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
  static void write_certificate(X509* certificate, const std::string& path) {
    std::FILE* file = private_file(path);
    EXPECT_EQ(PEM_write_X509(file, certificate), 1);
    std::fclose(file);
  }

  const TemporaryFolder& folder_;
  std::string name_;
  EVP_PKEY* key_;
  X509* certificate_;
  long serial_ = 1;
};

}  // namespace maki::wan::test
