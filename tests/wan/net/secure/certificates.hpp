// For tests: an authority and certificates, made on the spot.
#pragma once

#include <openssl/x509.h>

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
  explicit Authority(const TemporaryFolder& folder, const std::string& name);
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  std::string file() const { return folder_.path(name_ + ".pem"); }
  // Writes NAME.pem and NAME.key, and gives the settings that use them and trust this authority.
  Security issue(const std::string& name, const CertificateFields& fields);

 private:
  const TemporaryFolder& folder_;
  std::string name_;
  EVP_PKEY* key_;
  X509* certificate_;
  long serial_ = 1;
};

}  // namespace maki::wan::test
