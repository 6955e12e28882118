#include "bench/socket_loop.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <vector>

namespace maki::bench {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void write_for(const sockaddr_in& address, std::size_t block, double seconds) {
  const int socket_end = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(socket_end, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) _exit(1);
  const std::vector<std::byte> data(block, std::byte{1});
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) {
    if (write(socket_end, data.data(), data.size()) < 0) _exit(1);
  }
  _exit(0);
}

}  // namespace

double socket_loop(std::size_t block, double seconds) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    close(listener);
    return 0;
  }
  const pid_t writer = fork();
  if (writer == 0) write_for(address, block, seconds);
  const int reader = accept(listener, nullptr, nullptr);
  std::vector<std::byte> data(block);
  double bytes = 0;
  const auto begin = Clock::now();
  for (ssize_t count; (count = read(reader, data.data(), data.size())) > 0;) bytes += static_cast<double>(count);
  const std::chrono::duration<double> elapsed = Clock::now() - begin;
  close(reader), close(listener);
  waitpid(writer, nullptr, 0);
  return bytes / elapsed.count();
}

}  // namespace maki::bench
