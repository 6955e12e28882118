// Commands of the shell, and what they say.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

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

// The interpreter of tests: python3, or what the environment variable MAKI_PYTHON names.
inline std::string python() {
  const char* interpreter = std::getenv("MAKI_PYTHON");
  return interpreter ? interpreter : "python3";
}

}  // namespace maki::test
