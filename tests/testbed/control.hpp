// A Unix socket by which a running testbed is told to cut and restore its links, and asked for their counters.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "tests/testbed/testbed.hpp"

namespace maki::testbed {

// Serves in a thread. One request a connection, a line of words: "cut [LINK]", "restore [LINK]", "loss PROBABILITY [LINK]",
// "counters [LINK]"; a LINK is "0-1", none means all. The answer is text; "error: ..." where it was not understood.
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
