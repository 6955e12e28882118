// Sites, each a network namespace, joined by emulated links; and a Unix socket by which a running testbed is told to
// cut and restore its links, and asked for their counters.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/testbed/link.hpp"
#include "tests/testbed/namespaces.hpp"

namespace maki::testbed {

enum class Topology {
  kLine,  // 0 - 1 - 2 ...: sites that are not neighbours cannot reach each other (relays)
  kRing,  // the last one is the neighbour of the first
  kMesh,  // each with each
};

struct TestbedSettings {
  int sites = 2;
  Topology topology = Topology::kLine;
  LinkSettings link;
  // Of each link in place of link.rate, that from site 0 to site 1 first, in a ring that from the last site to the
  // first at the end; empty: all alike. Not of a mesh.
  std::vector<double> rates;
  // Of each site's kernel, by name. Empty: left as the namespace starts. "net.core.*" belongs to all and is not
  // touched.
  std::map<std::string, std::string> kernel;
};

// TestbedSettings::kernel with receive and send limits (bytes) and a congestion control; 0 or empty: left alone.
std::map<std::string, std::string> tcp_limits(std::size_t rmem, std::size_t wmem, const std::string& congestion);

class Testbed {
 public:
  // Throws wan::Error where it cannot be made (ask why_not() before).
  explicit Testbed(const TestbedSettings& settings);

  struct Link {
    int a, b;
    EmulatedLink link;
    std::string name() const;  // "0-1"
  };
  int sites() const { return static_cast<int>(spaces_.size()); }
  const Namespace& site(int i) const { return spaces_.at(static_cast<std::size_t>(i)); }
  std::string address(int i) const;  // IPv4, of the site on all its links
  std::string address6(int i) const;
  std::vector<Link>& links() { return links_; }
  EmulatedLink& link(int a, int b);  // throws wan::Error where there is none

 private:
  void join(int a, int b, const LinkSettings& settings);

  std::vector<Namespace> spaces_;
  std::vector<Link> links_;  // ends before the namespaces do
};

// Serves in a thread. One request a connection, a line of words: "cut [LINK]", "restore [LINK]", "loss PROBABILITY
// [LINK]", "counters [LINK]"; a LINK is "0-1", none means all. The answer is text; "error: ..." where it was not
// understood.
class Control {
 public:
  Control(Testbed& testbed, const std::string& path);
  ~Control();  // removes the socket
  Control(const Control&) = delete;
  const std::string& path() const { return path_; }

 private:
  void run();

  Testbed& testbed_;
  std::string path_;
  int listener_ = -1;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// Where the program of that process id has its socket.
std::string control_path(pid_t process);
// Removes the sockets of programs that are gone.
void remove_stale_sockets();

// Answers one request; throws wan::Error for what it does not understand.
std::string answer(Testbed& testbed, const std::string& request);
// Asks the testbed whose control socket is at `path`. Throws wan::Error.
std::string ask(const std::string& path, const std::string& request);

// Counters of all links as a table.
std::string counters_text(Testbed& testbed, const std::string& link = "");

}  // namespace maki::testbed
