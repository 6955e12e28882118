// A relay, and peers that speak to it with blocking sockets, for tests.
#pragma once

#include <future>
#include <memory>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/path/raw_peer.hpp"
#include "tests/wan/ports.hpp"
#include "wan/net/relay/admission.hpp"
#include "wan/net/relay/relay.hpp"

namespace maki::wan::test {

// kDone or kClosed. Throws what the admission throws.
inline IoStatus finish(RelayAdmission& admission, int descriptor) {
  for (;;) {
    const IoStatus status = admission.progress(descriptor);
    if (status == IoStatus::kDone || status == IoStatus::kClosed) return status;
    if (!ready(descriptor, status == IoStatus::kWantRead ? POLLIN : POLLOUT)) throw Error("the relay says nothing");
  }
}

inline Socket admit(const Endpoint& relay, RelayAdmission& admission) {
  Socket socket = connect_now(relay);
  if (finish(admission, socket.descriptor()) != IoStatus::kDone) throw Error("the relay closed the connection");
  return socket;
}
inline Socket admit(const Endpoint& relay, RelayAdmission&& admission) { return admit(relay, admission); }

inline Socket reach(const Endpoint& relay, const Key& key, const std::string& target) {
  return admit(relay, RelayAdmission(key, admission::Want::kConnect, target));
}

// A relay on loopback with one key and one destination, "server".
struct Rig {
  TemporaryFolder folder;
  Key key = Key::make();
  RawListener server;
  RelaySettings settings;
  Log log;
  std::unique_ptr<Relay> relay;

  Rig() {
    write_key(key, folder / "relay.key");
    settings.listen = {"127.0.0.1", free_ports(1)[0]};  // of the next one too, after this one has stopped
    settings.key_files = {folder / "relay.key"};
    settings.destinations["server"] = server.endpoint();
    settings.threads = 2;
  }
  void start() { relay = std::make_unique<Relay>(settings); }
  void stop() { relay.reset(); }
  Endpoint at() const { return relay->address(); }
  RelayRoute route(const std::string& target) const { return {settings.listen, folder / "relay.key", target}; }
  // One more key, which the relay admits.
  Key second_key() {
    const Key second = Key::make();
    write_key(second, folder / "second.key");
    settings.key_files.push_back(folder / "second.key");
    return second;
  }
  Socket reach(const std::string& target) const { return test::reach(at(), key, target); }
  // Another time it may be admitted.
  void expect_refused_for_now(admission::Want want, const std::string& name) const {
    RelayAdmission refused(key, want, name);
    EXPECT_THROW(admit(at(), refused), Error);
    EXPECT_TRUE(refused.try_again());
  }
  bool has_sessions(int count) const {
    return comes_true([&] { return relay->status().sessions == count; });
  }
};

struct StartedRig : Rig {
  StartedRig() { start(); }
};

// A session of it: the caller's end and the server's.
struct Joined {
  Socket here, there;
};

inline Joined join(Rig& rig) {
  auto there = std::async(std::launch::async, [&] { return rig.server.accept(); });
  Socket here = rig.reach("server");
  return {std::move(here), there.get()};
}

}  // namespace maki::wan::test
