// A program that a test starts and does not wait for.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "tests/src/cli/call.hpp"

namespace maki::test {

class SiteProcess {
 public:
  // Runs `command` in `directory`; what it says goes into the file `said`.
  SiteProcess(const std::string& directory, const std::string& command, const std::string& said) : said_(said) {
    const std::string line = "cd " + directory + " && exec env OMP_NUM_THREADS=1 " + command + " > " + said + " 2>&1";
    process_ = fork();
    if (process_ == 0) {
      execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      _exit(127);
    }
  }
  ~SiteProcess() {
    if (process_ <= 0) return;
    send(SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  SiteProcess(const SiteProcess&) = delete;
  SiteProcess& operator=(const SiteProcess&) = delete;

  void send(int signal) const { kill(process_, signal); }
  std::string said() const {
    std::stringstream text;
    text << std::ifstream(said_).rdbuf();
    return text.str();
  }
  // A process that never ends fails the test instead of hanging it.
  CallResult wait() {
    int status = 0;
    for (int i = 0; i < 10000 && waitpid(process_, &status, WNOHANG) == 0; ++i) {
      if (i == 9999) {
        send(SIGKILL);
        waitpid(process_, &status, 0);
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    process_ = 0;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, said()};
  }

 private:
  std::string said_;
  pid_t process_ = 0;
};

}  // namespace maki::test
