// Whole paths through a relay: encrypted end to end with a key that the relay does not have.
#include <gtest/gtest.h>

#include "tests/wan/net/path/pair.hpp"
#include "tests/wan/net/relay/rig.hpp"

namespace maki::wan {
namespace {

using namespace test;

struct PathRig : Rig {
  Security security = new_key(folder, "path.key");
  PathSettings paths = streams(4);
  Security callers = security;  // of another name: a relay could return a call to the machine it comes from

  PathRig() {
    paths.patience = 30;
    callers.own_name = "caller";
  }

  // A listener registered at the relay as `name`.
  Listener hide(const std::string& name) { return Listener({}, security, paths, {}, route(name)); }
  Path call(const std::string& name) { return Path::connect({name, 1}, callers, paths, {"caller", route(name)}); }
};

struct StartedPathRig : PathRig {
  StartedPathRig() { start(); }
};

struct Ends {
  Path here, there;
  ~Ends() { close_both(here, there); }
};

Ends join(PathRig& rig, Listener& listener, const std::string& name) {
  auto accepted = std::async(std::launch::async, [&] { return listener.accept(); });
  Path here = rig.call(name);
  return {std::move(here), std::move(accepted.get().path)};
}

void expect_exchange(Ends& ends, std::size_t size, unsigned seed) {
  const auto one = pattern(size, seed), other = pattern(size + 1, seed + 1);
  std::vector<std::byte> here(size + 1), there(size);
  auto far = std::async(std::launch::async, [&] { return ends.there.send_receive(seed, other, there); });
  EXPECT_EQ(ends.here.send_receive(seed, one, here), size + 1);
  EXPECT_EQ(far.get(), size);
  EXPECT_EQ(here, other);
  EXPECT_EQ(there, one);
}

TEST(RelayPath, HiddenListenerTakesAnEncryptedPath) {
  StartedPathRig rig;
  Listener listener = rig.hide("amsterdam");
  Ends ends = join(rig, listener, "amsterdam");
  expect_exchange(ends, 20 << 20, 1);
  EXPECT_TRUE(comes_true([&] { return ends.here.status().streams_up == 4; }));
  EXPECT_EQ(ends.here.status().identity, read_key(rig.folder / "path.key").id);
  EXPECT_EQ(rig.relay->status().sessions, 4);
}

TEST(RelayPath, DestinationOfTheRelayTakesAPath) {
  PathRig rig;
  Listener listener({"127.0.0.1", 0}, rig.security, rig.paths);
  rig.settings.destinations["tokyo"] = listener.address();
  rig.start();
  Ends ends = join(rig, listener, "tokyo");
  expect_exchange(ends, 5 << 20, 1);
}

// A relay on the caller's own machine too: behind it may be anyone.
TEST(RelayPath, ACallThatARelayLeadsBackIsRefused) {
  StartedPathRig rig;
  Listener listener = rig.hide("amsterdam");
  const std::string error = error_of<PathError>([&] {
    Path::connect({"amsterdam", 1}, rig.security, rig.paths, {"caller", rig.route("amsterdam")});
  });
  EXPECT_TRUE(says(error, "came back to its own caller"));
}

TEST(RelayPath, StreamsComeBackThroughTheRelay) {
  StartedPathRig rig;
  Listener listener = rig.hide("amsterdam");
  Ends ends = join(rig, listener, "amsterdam");
  ASSERT_TRUE(comes_true([&] { return ends.here.status().streams_up == 4; }));
  for (int i = 0; i < 4; ++i) {
    ends.here.drop_stream(i);
    expect_exchange(ends, 3 << 20, 10 + 2 * static_cast<unsigned>(i));
  }
  EXPECT_TRUE(comes_true([&] { return ends.here.status().streams_up == 4; }));
}

TEST(RelayPath, OutlivesARestartOfTheRelay) {
  StartedPathRig rig;
  Listener listener = rig.hide("amsterdam");
  Ends ends = join(rig, listener, "amsterdam");
  expect_exchange(ends, 1 << 20, 1);
  const auto words = pattern(30 << 20, 5);
  std::vector<std::byte> heard(words.size());
  Request receiving = ends.there.start_receive(7, heard), sending = ends.here.start_send(7, words);
  rig.stop();
  pause(0.3);
  rig.start();
  receiving.wait();
  sending.wait();
  EXPECT_EQ(heard, words);
  EXPECT_GT(ends.here.status().reconnections, 0u);
}

TEST(RelayPath, RelayKeyAloneOpensNoPath) {
  StartedPathRig rig;
  Listener listener = rig.hide("amsterdam");
  Security other = new_key(rig.folder, "other.key");
  EXPECT_THROW(Path::connect({"amsterdam", 1}, other, rig.paths, {"caller", rig.route("amsterdam")}), PathError);
  Security relays;
  relays.key_files = {rig.folder / "relay.key"};
  EXPECT_THROW(Path::connect({"amsterdam", 1}, relays, rig.paths, {"caller", rig.route("amsterdam")}), PathError);
}

TEST(RelayPath, WithoutTheRelaysKeyNothingPasses) {
  StartedPathRig rig;
  Listener listener = rig.hide("amsterdam");
  RelayRoute route = rig.route("amsterdam");
  route.key_file = rig.folder / "path.key";
  EXPECT_THROW(Path::connect({"amsterdam", 1}, rig.security, rig.paths, {"caller", route}), PathError);
  EXPECT_THROW(Listener({}, rig.security, rig.paths, {}, route), SecurityError);
}

}  // namespace
}  // namespace maki::wan
