// Commands of the shell, and what they say.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>

namespace maki::test {

struct CallResult {
  int code = -1;       // exit code; stays where a signal ended it
  std::string output;  // both streams
};

inline CallResult call_shell(const std::string& command) {
  CallResult result;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    result.output.append(buffer.data(), count);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
  return result;
}

// Whether a process is there and has not ended.
inline bool runs(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string status;
  std::getline(file, status);  // leaves it empty where the process ends meanwhile
  const std::size_t name = status.rfind(')');
  return name != std::string::npos && status[name + 2] != 'Z';
}

// A command that a test starts and does not wait for. It has a session of its own, and with it a group of processes,
// all of which end with this.
class StartedCommand {
 public:
  // What it says goes into `file`.
  StartedCommand(const std::string& command, const std::string& file) : file_(file) {
    const std::string line = "exec > '" + file + "' 2>&1; " + command;
    process_ = fork();
    if (process_ < 0) throw std::system_error(errno, std::generic_category(), command);
    if (process_ == 0) {
      setsid();
      execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      _exit(127);
    }
    while (getsid(process_) == getsid(0) && !ended()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  ~StartedCommand() { wait(0); }
  StartedCommand(const StartedCommand&) = delete;
  StartedCommand& operator=(const StartedCommand&) = delete;

  pid_t process() const { return process_; }
  void send(int signal) const { kill(-process_, signal); }
  std::string said() const {
    std::ifstream file(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool ended() {
    if (!ended_) ended_ = waitpid(process_, &status_, WNOHANG) == process_;
    return ended_;
  }
  // A command that never ends fails the test instead of hanging it: it is killed after so many seconds.
  CallResult wait(double seconds = 300) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (!ended() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (!ended()) {
      send(SIGKILL);
      waitpid(process_, &status_, 0);
      ended_ = true;
    }
    return {WIFEXITED(status_) ? WEXITSTATUS(status_) : -1, said()};
  }

 private:
  std::string file_;
  pid_t process_ = 0;
  int status_ = 0;
  bool ended_ = false;
};

// The interpreter of tests: python3, or what the environment variable MAKI_PYTHON names.
inline std::string python() {
  const char* interpreter = std::getenv("MAKI_PYTHON");
  return interpreter ? interpreter : "python3";
}

}  // namespace maki::test
