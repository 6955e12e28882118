// Options and files of paths, and `maki wan` as a user calls it.
#include "src/cli/wan/path_options.hpp"

#include <sys/stat.h>

#include "tests/messages.hpp"
#include "tests/src/cli/program_fixture.hpp"
#include "wan/net/secure/key.hpp"

namespace maki {
namespace {

using namespace test;

PathChoices read_command_line(const std::string& arguments) {
  CLI::App app;
  PathOptions options;
  add_path_options(app, options);
  app.parse(arguments, false);
  return read_path_options(options);
}

std::string complaint(const std::string& arguments) {
  return error_of<std::exception>([&] { read_command_line(arguments); });
}

TEST(PathOptions, CommandLineSetsEveryKey) {
  const PathChoices all = read_command_line(
      "--key one.key --key two.key --streams 64 --window '4 MB' --send-chunk 128KiB --receive-chunk '512 kB' "
      "--pacing '800 Mbit/s' --congestion bbr --local-address 10.0.0.1 --local-ports 6000-6100 --patience '2 min' "
      "--stream-timeout 3 --heartbeat 0.5 --connect-timeout 4 --handshake-timeout 5 --unmatched-limit '1 GB' "
      "--message-limit '2 GB' --relay gate:7000 --relay-key gate.key --relay-target edinburgh");
  EXPECT_EQ(all.security, (wan::Security{.key_files = {"one.key", "two.key"}}));
  EXPECT_EQ(all.settings, (wan::PathSettings{.streams = 64,
                                             .window = 4'000'000,
                                             .send_chunk = 131072,
                                             .receive_chunk = 512'000,
                                             .pacing_rate = 1e8,
                                             .congestion = "bbr",
                                             .local_address = "10.0.0.1",
                                             .local_port_first = 6000,
                                             .local_port_last = 6100,
                                             .connect_timeout = 4,
                                             .handshake_timeout = 5,
                                             .heartbeat = 0.5,
                                             .stream_timeout = 3,
                                             .patience = 120,
                                             .unmatched_limit = 1'000'000'000,
                                             .message_limit = 2'000'000'000}));
  EXPECT_EQ(all.relay, (wan::RelayRoute{{"gate", 7000}, "gate.key", "edinburgh"}));

  const PathChoices certificates =
      read_command_line("--certificate me.pem --private-key me.key --authority ca.pem --peer-name them --own-name us");
  EXPECT_EQ(certificates.security, (wan::Security{{}, "me.pem", "me.key", "ca.pem", "them", "us"}));
  EXPECT_TRUE(read_command_line("--insecure").security.insecure);
}

TEST(PathOptions, WhatIsPrintedIsReadAgain) {
  const PathChoices first = read_command_line(
      "--key one.key --key 'two \"quoted\".key' --streams 7 --window 4MB --pacing '97.3 MB/s' --local-ports 6000 "
      "--patience '1.5 h' --relay [::1]:7000 --relay-key r.key --relay-target x --congestion cubic --send-chunk 100001");
  const std::string text = path_toml(first);
  PathChoices again;
  read_path_table(text, "text", again);
  EXPECT_EQ(again.settings, first.settings) << text;
  EXPECT_EQ(again.security, first.security);
  EXPECT_EQ(again.relay, first.relay);
  EXPECT_EQ(path_toml(again), text);
  EXPECT_EQ(path_toml(PathChoices{}), "[path]\n");
}

using PathFile = Program;

TEST_F(PathFile, CommandLineWinsOverTheFile) {
  const std::string file =
      write("path.toml", "[path]\nkey = ['a.key', 'b.key']\nstreams = 8\nwindow = '1 MB'\npatience = 30\n");
  const PathChoices all = read_command_line("--config " + file + " --streams 4 --key c.key");
  EXPECT_EQ(all.settings.streams, 4);
  EXPECT_EQ(all.settings.window, 1'000'000u);
  EXPECT_DOUBLE_EQ(all.settings.patience, 30);
  EXPECT_EQ(all.security.key_files, std::vector<std::string>{"c.key"});
}

TEST_F(PathFile, MistakesNameFileLineAndWhatWasMeant) {
  const auto of_file = [&](const std::string& text) {
    const std::string file = write("path.toml", text);
    return complaint("--insecure --config " + file);
  };
  expect_contains(of_file("[path]\nstreams = 8\nsendchunk = 3\n"), {"path.toml line 3", "sendchunk", "'send_chunk'"});
  expect_contains(of_file("[path]\npaceing = 3\n"), {"line 2", "'pacing'"});
  expect_contains(of_file("[path]\n\nwindow = '4 Mb'\n"), {"line 3", "window", "'Mb'", "MB"});
  expect_contains(of_file("[path]\nstreams = 257\n"), {"line 2", "streams", "257", "1 to 256"});
  expect_contains(of_file("[path]\nstreams = [1, 2]\n"), {"line 2", "streams", "list"});
  expect_contains(of_file("[paths]\nstreams = 2\n"), {"line 1", "'paths'", "[path]"});
  expect_contains(of_file("streams = 2\n"), {"line 1", "'streams'", "[path]"});
  expect_contains(of_file("[path\n"), {"line 1", "TOML"});
  expect_contains(complaint("--insecure --config " + path("none")), {"none", "no such file"});
}

// The relay could read everything.
TEST_F(PathFile, KeysOfThePathAreNoKeysOfTheRelay) {
  const std::string site = path("site.key"), other = path("other.key"), copy = path("copy.key");
  wan::write_key(wan::Key::make(), site);
  wan::write_key(wan::Key::make(), other);
  wan::write_key(wan::read_key(site), copy);
  const std::string through = " --relay gate:7000 --relay-target edinburgh --relay-key ";
  const auto complaint_of = [&](const std::string& relay_key) {
    return complaint("--key " + other + " --key " + site + through + relay_key);
  };
  for (const std::string& same : {site, copy})
    expect_contains(complaint_of(same), {"relay's key " + same, site, "could read", "keygen"});
  const std::string own = path("relay.key");
  wan::write_key(wan::Key::make(), own);
  EXPECT_EQ(complaint_of(own), "");
  expect_contains(complaint("--key none.key" + through + "none.key"), {"none.key"});
}

TEST(PathOptions, MistakesOnTheCommandLineNameTheOption) {
  expect_contains(complaint("--insecure --pacing 100"), {"--pacing", "no unit", "Mbit/s"});
  expect_contains(complaint("--insecure --local-ports 7000-6000"), {"--local-ports", "back"});
  expect_contains(complaint("--insecure --local-ports 70000"), {"--local-ports", "65535"});
  expect_contains(complaint("--insecure --relay gate"), {"--relay", "gate"});
  expect_contains(complaint("--insecure --relay gate:1 --relay-key k"), {"--relay-target"});
  expect_contains(complaint("--streams 3"), {"--key", "keygen", "--insecure"});
}

using WanProgram = Program;

TEST_F(WanProgram, KeygenWritesAPrivateFileAndNeverOverOne) {
  const std::string key = path("site.key");
  expect_end(call("wan keygen " + key, "umask 0; "), 0, {key, "bench"});
  struct stat status {};
  ASSERT_EQ(stat(key.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  const std::string text = text_of(key);
  expect_end(call("wan keygen " + key), 1, {"maki: error:", key});
  EXPECT_EQ(text_of(key), text);
  EXPECT_EQ(call("wan keygen " + path("no/such/place.key")).code, 1);
}

TEST_F(WanProgram, WrongUsageAndHelp) {
  for (const std::string wrong : {"", "keygen", "nonsense", "bench --insecure"})  // neither called nor calling
    EXPECT_EQ(call("wan " + wrong).code, 2) << wrong;
  for (const std::string command : {"keygen", "bench", "copy", "serve", "sync", "relay"})
    expect_end(call("wan " + command + " --help"), 0, {"Example:", "maki wan " + command});
}

// As a task of a launcher that offers MPI, which other commands then start or refuse.
TEST_F(WanProgram, StartsNoMpi) {
  expect_end(call("wan keygen " + path("one.key"), "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_ID=0 "), 0);
}

// Who may have which folder, as a command line says it.

using wan::Security;
using wan::copy::ServerOptions;

class Shares : public Program {
 protected:
  std::string make_key(const std::string& name) const {
    const std::string file = path(name);
    wan::write_key(wan::Key::make(), file);
    return file;
  }
  // As run_serve() does it: `own` are the keys of --key.
  ServerOptions set(const ShareOptions& options, const std::vector<std::string>& own) const {
    Security security;
    security.key_files = own;
    for (const std::string& file : keys_of(options)) security.key_files.push_back(file);
    ServerOptions server;
    set_shares(options, security, server);
    return server;
  }
  static std::string id_of(const std::string& file) { return wan::read_key(file).id; }
};

TEST_F(Shares, NameAKeyAFolderAndWhatMayBeDone) {
  const Allowed plain = parse_allowed("a.key:/data/x");
  EXPECT_EQ(plain.who, "a.key");
  EXPECT_EQ(plain.root, "/data/x");
  EXPECT_TRUE(plain.read_only);
  EXPECT_FALSE(parse_allowed("a.key:data:rw").read_only);
  EXPECT_TRUE(parse_allowed("a.key:data:ro").read_only);
  EXPECT_EQ(parse_allowed("a.key:odd:name:rw").root, "odd:name");
  for (const char* wrong : {"", "a.key", "a.key:", ":data", "a.key::rw"})
    EXPECT_THROW(parse_allowed(wrong), Error) << wrong;
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
  expect_contains(server.shares.at(id_of(three)).holder, {"three"});
  EXPECT_FALSE(server.others);
  EXPECT_EQ(shares_text(server).size(), 3u);
}

TEST_F(Shares, NobodyIsForgotten) {
  const std::string one = make_key("one"), two = make_key("two");
  EXPECT_THROW(set({}, {one}), Error);                                        // a key without a folder
  EXPECT_THROW(set({.allowed = {two + ":/two"}}, {one}), Error);              // the same of --key
  EXPECT_THROW(set({.root = "all", .allowed = {two + ":/two"}}, {}), Error);  // a folder for nobody
  EXPECT_THROW(set({.root = "all", .allowed = {one + ":/two"}}, {one}), Error);
  EXPECT_NO_THROW(set({.allowed = {one + ":/one", two + ":/two:rw"}}, {}));
}

TEST_F(Shares, WithoutKeys) {
  Security security;
  security.insecure = true;
  ServerOptions server;
  EXPECT_THROW(set_shares({.allowed = {"a.key:/a"}}, security, server), Error);
  set_shares({.root = "all"}, security, server);
  ASSERT_TRUE(server.others);
  EXPECT_EQ(server.others->root, "all");
  Security certificates;
  certificates.certificate = "own.pem";
  ServerOptions named;
  set_shares({.allowed = {"leiden.example:/leiden:rw"}}, certificates, named);
  EXPECT_EQ(named.shares.at("leiden.example").root, "/leiden");
  EXPECT_FALSE(named.others);
}

TEST(RemotePath, HostPortAndPath) {
  const auto full = parse_remote("amsterdam.example:6000/runs/one/");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->host, (wan::Endpoint{"amsterdam.example", 6000}));
  EXPECT_EQ(full->path, "runs/one/");
  const auto six = parse_remote("[2001:db8::1]:6000/a");
  ASSERT_TRUE(six);
  EXPECT_EQ(six->host, (wan::Endpoint{"2001:db8::1", 6000}));
  EXPECT_EQ(six->path, "a");
  EXPECT_EQ(parse_remote("1.2.3.4:6000")->path, "");
  EXPECT_EQ(parse_remote("1.2.3.4:6000/")->path, "");
  EXPECT_EQ(parse_remote("h:1//etc/passwd")->path, "/etc/passwd");
}

TEST(RemotePath, PathsOfThisMachine) {
  for (const char* local :
       {"a", "a/b", "/abs", "./h:6000/a", "/h:6000/a", "dir/h:6000", "C:file", "h:60a/b", "h:", ":", ":6000/a", ""})
    EXPECT_FALSE(parse_remote(local)) << local;
}

}  // namespace
}  // namespace maki
