#include "tests/testbed/control.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "wan/net/error.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::testbed {
namespace {

constexpr std::size_t kLongestRequest = 200;
const std::string kFolder = "/run", kPrefix = "maki-testbed-";

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw wan::Error(path + " is too long for a Unix socket");
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

template <class Work>
void for_links(Testbed& testbed, const std::string& name, Work work) {
  bool found = false;
  for (Testbed::Link& link : testbed.links())
    if (name.empty() || name == link.name()) {
      work(link);
      found = true;
    }
  if (!found) throw wan::Error("there is no link " + name, "", "its name is of two sites, as in 0-1");
}

std::string counters_line(const std::string& name, const LinkCounters& c) {
  return fmt::format("{:<8} {:>11} {:>14} {:>11} {:>11} {:>11} {:>14} {:>7}\n", name, c.packets, c.bytes, c.queue_drops,
                     c.loss_drops, c.cut_drops, c.greatest_queue, c.late);
}

void reply(int connection, const std::string& text) {
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n = send(connection, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return;
    sent += static_cast<std::size_t>(n);
  }
}

std::string read_all(int connection, std::size_t limit, bool line) {
  std::string text;
  char piece[512];
  while (text.size() < limit && !(line && text.find('\n') != std::string::npos)) {
    const ssize_t n = recv(connection, piece, sizeof piece, 0);
    if (n <= 0) break;
    text.append(piece, static_cast<std::size_t>(n));
  }
  return text;
}

}  // namespace

std::string control_path(pid_t process) { return fmt::format("{}/{}{}.socket", kFolder, kPrefix, process); }

void remove_stale_sockets() {
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    const long process = std::atol(name.c_str() + kPrefix.size());
    if (process > 0 && kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH) unlink(entry.path().c_str());
  }
}

std::string counters_text(Testbed& testbed, const std::string& link) {
  std::string text = fmt::format("{:<8} {:>11} {:>14} {:>11} {:>11} {:>11} {:>14} {:>7}\n", "link", "packets", "bytes",
                                 "queue_drops", "loss_drops", "cut_drops", "greatest_queue", "late");
  for_links(testbed, link, [&](Testbed::Link& l) {
    text += counters_line(fmt::format("{}>{}", l.a, l.b), l.link.forth());
    text += counters_line(fmt::format("{}>{}", l.b, l.a), l.link.back());
  });
  return text;
}

std::string answer(Testbed& testbed, const std::string& request) {
  std::istringstream words(request);
  std::string what, link;
  double probability = 0;
  words >> what;
  if (what == "loss" && !(words >> probability && probability >= 0 && probability <= 1))
    throw wan::Error("loss needs a probability", "0 to 1", "loss 1e-4");
  words >> link;
  if (what == "cut")
    for_links(testbed, link, [](Testbed::Link& l) { l.link.cut(); });
  else if (what == "restore")
    for_links(testbed, link, [](Testbed::Link& l) { l.link.restore(); });
  else if (what == "loss")
    for_links(testbed, link, [&](Testbed::Link& l) { l.link.set_loss(probability); });
  else if (what == "counters")
    return counters_text(testbed, link);
  else
    throw wan::Error("'" + what + "' is not known", "", "cut, restore, loss, counters");
  return "done\n";
}

Control::Control(Testbed& testbed, const std::string& path) : testbed_(testbed), path_(path) {
  const sockaddr_un address = address_of(path);
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  unlink(path.c_str());
  if (listener_ < 0 || bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener_, 8) != 0)
    throw wan::Error("no control socket at " + path, std::strerror(errno));
  thread_ = std::thread([this] { run(); });
}

Control::~Control() {
  stopping_ = true;
  shutdown(listener_, SHUT_RDWR);  // wakes the thread
  thread_.join();
  close(listener_);
  unlink(path_.c_str());
}

void Control::run() {
  while (!stopping_) {
    const wan::Socket connection(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.open()) continue;
    const timeval patience{2, 0};
    setsockopt(connection.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    try {
      reply(connection.descriptor(), answer(testbed_, read_all(connection.descriptor(), kLongestRequest, true)));
    } catch (const std::exception& error) {
      reply(connection.descriptor(), fmt::format("error: {}\n", error.what()));
    }
  }
}

std::string ask(const std::string& path, const std::string& request) {
  const sockaddr_un address = address_of(path);
  const wan::Socket connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(connection.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw wan::Error("no testbed at " + path, std::strerror(errno), "MAKI_TESTBED names the socket of a running one");
  reply(connection.descriptor(), request + "\n");
  const std::string text = read_all(connection.descriptor(), std::size_t{1} << 20, false);
  if (text.starts_with("error: ")) throw wan::Error(text.substr(7, text.size() - 8));
  return text;
}

}  // namespace maki::testbed
