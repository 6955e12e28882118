// A relay and peers that speak to it with blocking sockets, for tests.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "tests/wan/net/path/pair.hpp"
#include "wan/net/error.hpp"
#include "wan/net/relay/admission.hpp"
#include "wan/net/relay/relay.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan::test {

// Lines of the log go nowhere while it lives (a test provokes many).
struct QuietLog {
  QuietLog() {
    set_log_sink([](LogLevel, const std::string&) {});
  }
  ~QuietLog() { set_log_sink({}); }
};

inline constexpr int kPatience = 20000;  // milliseconds: no test waits so long unless it fails

inline bool ready(int descriptor, short events, int milliseconds = kPatience) {
  pollfd one{descriptor, events, 0};
  return poll(&one, 1, milliseconds) > 0;
}

inline Socket connect_now(const Endpoint& endpoint) {
  Socket socket = start_connect(resolve(endpoint).front(), PathSettings{});
  if (!ready(socket.descriptor(), POLLOUT) || connect_error(socket.descriptor()) != 0) throw Error("no connection");
  return socket;
}

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

inline Socket reach(const Endpoint& relay, const Key& key, const std::string& target) {
  return admit(relay, *RelayAdmission::connect_to(key, target));
}

// All of it, or false where the other side has gone.
inline bool put(const Socket& socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent < 0 && !ready(socket.descriptor(), POLLOUT)) throw Error("nothing can be written");
    if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

// Up to `most` bytes, fewer where the other side ends. `broken` tells whether it ended by a reset.
inline std::vector<std::byte> get(const Socket& socket, std::size_t most, bool* broken = nullptr) {
  std::vector<std::byte> bytes(most);
  std::size_t have = 0;
  while (have < most) {
    const ssize_t got = recv(socket.descriptor(), bytes.data() + have, most - have, 0);
    if (got < 0 && errno == EAGAIN) {
      if (!ready(socket.descriptor(), POLLIN)) throw Error("nothing comes");
      continue;
    }
    if (broken != nullptr) *broken = got < 0;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

inline bool ended(const Socket& socket) { return get(socket, 1).empty(); }

// A plain TCP server, to be a relay's destination.
class Server {
 public:
  Server() : socket_(listen_on({"127.0.0.1", 0}, PathSettings{})) {}
  Endpoint endpoint() const { return {"127.0.0.1", local_address(socket_.descriptor()).port()}; }
  int socket() const { return socket_.descriptor(); }
  Socket accept() {
    Address from;
    if (!ready(socket_.descriptor(), POLLIN)) throw Error("nobody calls");
    return accept_from(socket_.descriptor(), from);
  }

 private:
  Socket socket_;
};

// A relay on loopback with one key and one destination, "server".
struct Rig {
  TemporaryFolder folder;
  Key key = Key::make();
  Server server;
  RelaySettings settings;
  QuietLog quiet;
  std::unique_ptr<Relay> relay;

  Rig() {
    write_key(key, folder / "relay.key");
    settings.listen = {"127.0.0.1", 0};
    settings.key_files = {folder / "relay.key"};
    settings.destinations["server"] = server.endpoint();
    settings.threads = 2;
  }
  void start() {
    relay = std::make_unique<Relay>(settings);
    settings.listen = relay->address();  // the next one takes the same port
  }
  void stop() { relay.reset(); }
  Endpoint at() const { return relay->address(); }
  RelayRoute route(const std::string& target) const { return {settings.listen, folder / "relay.key", target}; }
};

// A session of it: the caller's end and the server's.
struct Joined {
  Socket here, there;
};

inline Joined join(Rig& rig) {
  auto there = std::async(std::launch::async, [&] { return rig.server.accept(); });
  Socket here = reach(rig.at(), rig.key, "server");
  return {std::move(here), there.get()};
}

template <class Condition>
bool eventually(const Condition& condition) {
  for (int i = 0; i < kPatience / 5; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace maki::wan::test
