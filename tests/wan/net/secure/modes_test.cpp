// Two sides that are set up for different ways of knowing each other: both say so at once, however patient they are.
#include <gtest/gtest.h>

#include "tests/wan/net/secure/certificates.hpp"
#include "tests/wan/net/secure/service.hpp"

namespace maki::wan {
namespace {

class Modes : public testing::Test {
 protected:
  Modes() { certificate_.peer_name = "site.example"; }
  // What the caller is told. The listener's log has to say `logged`.
  std::string refusal(const Security& caller, const Security& listener, const std::string& logged) {
    test::Log log;
    test::Service service(listener);
    PathSettings settings;
    settings.patience = 600;
    std::string said;
    try {
      Path::connect(service.address(), caller, settings, {.name = "caller", .within = 120});
    } catch (const PathError& error) {
      said = error.what();
      EXPECT_LT(error.seconds_down(), 100) << said;
    }
    EXPECT_TRUE(test::says(said, "refuses the path"));
    EXPECT_TRUE(test::comes_true([&] { return log.has(logged); })) << logged;
    return said;
  }

  test::TemporaryFolder folder_;
  test::Authority authority_{folder_, "authority"};
  Security insecure_ = test::insecure(), key_ = test::new_key(folder_, "a.key");
  Security certificate_ = authority_.issue("site", {.common_name = "site.example"});
};

TEST_F(Modes, InsecureCallersAreTold) {
  for (const Security& secure : {key_, certificate_})
    EXPECT_TRUE(
        test::says(refusal(insecure_, secure, "it comes insecure"), "this side asks for a key or certificates"));
}

TEST_F(Modes, InsecureListenersAreToldOf) {
  for (const Security& secure : {key_, certificate_})
    EXPECT_TRUE(test::says(refusal(secure, insecure_, "this side is insecure"), "speaks no TLS"));
}

TEST_F(Modes, KeysAndCertificatesAreToldApart) {
  EXPECT_TRUE(
      test::says(refusal(key_, certificate_, "this side uses certificates"), "certificate in place of the key"));
  EXPECT_TRUE(
      test::says(refusal(certificate_, key_, "offers no key"), "both sides have to use keys, or both certificates"));
}

}  // namespace
}  // namespace maki::wan
