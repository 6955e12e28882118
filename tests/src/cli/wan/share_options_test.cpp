// Who may have which folder, as a command line says it.
#include "src/cli/wan/share_options.hpp"

#include <gtest/gtest.h>

#include "kernels/error.hpp"
#include "tests/wan/temporary_folder.hpp"
#include "wan/net/secure/key.hpp"

namespace {

using maki::wan::Security;
using maki::wan::copy::ServerOptions;

class Shares : public ::testing::Test {
 protected:
  std::string make_key(const std::string& name) const {
    const std::string file = keys_ / name;
    maki::wan::write_key(maki::wan::Key::make(), file);
    return file;
  }
  // As run_serve() does it: `own` are the keys of --key.
  ServerOptions set(const maki::ShareOptions& options, const std::vector<std::string>& own) const {
    Security security;
    security.key_files = own;
    for (const std::string& file : maki::keys_of(options)) security.key_files.push_back(file);
    ServerOptions server;
    maki::set_shares(options, security, server);
    return server;
  }
  static std::string id_of(const std::string& file) { return maki::wan::read_key(file).id; }
  maki::wan::test::TemporaryFolder keys_;
};

TEST_F(Shares, NameAKeyAFolderAndWhatMayBeDone) {
  const maki::Allowed plain = maki::parse_allowed("a.key:/data/x");
  EXPECT_EQ(plain.who, "a.key");
  EXPECT_EQ(plain.root, "/data/x");
  EXPECT_TRUE(plain.read_only);
  EXPECT_FALSE(maki::parse_allowed("a.key:data:rw").read_only);
  EXPECT_TRUE(maki::parse_allowed("a.key:data:ro").read_only);
  EXPECT_EQ(maki::parse_allowed("a.key:odd:name:rw").root, "odd:name");
  for (const char* wrong : {"", "a.key", "a.key:", ":data", "a.key::rw"})
    EXPECT_THROW(maki::parse_allowed(wrong), maki::Error) << wrong;
}

TEST_F(Shares, EachKeyGetsItsFolder) {
  const std::string one = make_key("one"), two = make_key("two"), three = make_key("three");
  const ServerOptions server =
      set({.root = "all", .read_only = true, .allowed = {two + ":/two:rw", three + ":/three"}}, {one});
  ASSERT_EQ(server.shares.size(), 3u);
  EXPECT_EQ(server.shares.at(id_of(one)).root, "all");
  EXPECT_TRUE(server.shares.at(id_of(one)).read_only);
  EXPECT_EQ(server.shares.at(id_of(two)).root, "/two");
  EXPECT_FALSE(server.shares.at(id_of(two)).read_only);
  EXPECT_TRUE(server.shares.at(id_of(three)).read_only);
  EXPECT_NE(server.shares.at(id_of(three)).holder.find("three"), std::string::npos);
  EXPECT_FALSE(server.others);
  EXPECT_EQ(maki::shares_text(server).size(), 3u);
}

TEST_F(Shares, NobodyIsForgotten) {
  const std::string one = make_key("one"), two = make_key("two");
  EXPECT_THROW(set({}, {one}), maki::Error);                                        // a key without a folder
  EXPECT_THROW(set({.allowed = {two + ":/two"}}, {one}), maki::Error);              // the same of --key
  EXPECT_THROW(set({.root = "all", .allowed = {two + ":/two"}}, {}), maki::Error);  // a folder for nobody
  EXPECT_THROW(set({.root = "all", .allowed = {one + ":/two"}}, {one}), maki::Error);
  EXPECT_NO_THROW(set({.allowed = {one + ":/one", two + ":/two:rw"}}, {}));
}

TEST_F(Shares, WithoutKeys) {
  Security security;
  security.insecure = true;
  ServerOptions server;
  EXPECT_THROW(maki::set_shares({.allowed = {"a.key:/a"}}, security, server), maki::Error);
  maki::set_shares({.root = "all"}, security, server);
  ASSERT_TRUE(server.others);
  EXPECT_EQ(server.others->root, "all");
  Security certificates;
  certificates.certificate = "own.pem";
  ServerOptions named;
  maki::set_shares({.allowed = {"leiden.example:/leiden:rw"}}, certificates, named);
  EXPECT_EQ(named.shares.at("leiden.example").root, "/leiden");
  EXPECT_FALSE(named.others);
}

}  // namespace
