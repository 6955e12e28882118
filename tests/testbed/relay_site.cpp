#include "tests/testbed/relay_site.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/testbed/namespaces.hpp"
#include "wan/net/error.hpp"
#include "wan/net/relay/relay.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::testbed {
namespace {

void serve(const Wire& wire, const std::string& space, const wan::RelaySettings& settings) {
  enter_namespace(space);
  // A line for each stream would hide the table.
  wan::set_log_sink([](wan::LogLevel level, const std::string& text) {
    if (level != wan::LogLevel::kInfo) fmt::print(stderr, "relay: {}\n", text);
  });
  const wan::Relay relay(settings);
  wire.put(relay.address().port);
  while (wire.get<Order>().what != Order::kEnd) wire.put(Reply{cpu_seconds(), 1});
}

int serve_in_child(int descriptor, const std::string& space, const wan::RelaySettings& settings) {
  try {
    serve(Wire(descriptor), space, settings);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "wan_testbed: error at the relay: {}\n", error.what());
    return 1;
  }
}

}  // namespace

RelaySite::RelaySite(const std::string& space, const std::string& address, const std::string& key_file,
                     const std::string& congestion) {
  wan::RelaySettings settings;
  settings.listen = {address, 0};
  settings.key_files = {key_file};
  settings.socket.congestion = congestion;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    throw wan::Error("no socket pair", std::strerror(errno));
  child_ = fork();
  if (child_ == 0) {
    close(pair[0]);
    _exit(serve_in_child(pair[1], space, settings));
  }
  close(pair[1]);
  own_ = wan::Socket(pair[0]);
  port_ = Wire(own_.descriptor()).get<std::uint16_t>();
}

RelaySite::~RelaySite() {
  const Order end{Order::kEnd, 0, 0, 0};
  send(own_.descriptor(), &end, sizeof end, MSG_NOSIGNAL);
  wait_for(child_);
}

double RelaySite::cpu_seconds() const {
  const Wire wire(own_.descriptor());
  wire.put(Order{Order::kUsage, 0, 0, 0});
  return wire.get<Reply>().time;
}

}  // namespace maki::testbed
