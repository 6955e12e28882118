// A relay alone, over loopback: what it passes on, and its own processor time, for 1 to 16 sessions at once.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "bench/report.hpp"
#include "wan/net/error.hpp"
#include "wan/net/relay/admission.hpp"
#include "wan/net/relay/relay.hpp"
#include "wan/net/secure/key.hpp"
#include "wan/net/socket/tcp.hpp"

namespace {

using namespace maki;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kBlock = 256 << 10;

void wait_for(const wan::Socket& socket, short events) {
  pollfd one{socket.descriptor(), events, 0};
  if (poll(&one, 1, 20000) <= 0) throw wan::Error("the other side does nothing");
}

wan::Socket reach(const wan::Endpoint& endpoint) {
  wan::Socket socket = wan::start_connect(wan::resolve(endpoint).front(), wan::PathSettings{});
  wait_for(socket, POLLOUT);
  return socket;
}

wan::Socket admitted(const wan::Endpoint& relay, const wan::Key& key) {
  wan::Socket socket = reach(relay);
  wan::RelayAdmission admission(key, wan::admission::Want::kConnect, "sink");
  while (admission.progress(socket.descriptor()) != wan::IoStatus::kDone) wait_for(socket, POLLIN);
  return socket;
}

void pour(const wan::Socket& socket, std::size_t bytes) {
  const std::vector<std::byte> block(kBlock, std::byte{1});
  while (bytes > 0) {
    const ssize_t sent = send(socket.descriptor(), block.data(), std::min(bytes, kBlock), MSG_NOSIGNAL);
    if (sent > 0)
      bytes -= static_cast<std::size_t>(sent);
    else
      wait_for(socket, POLLOUT);
  }
}

void swallow(const wan::Socket& socket, std::size_t bytes) {
  std::vector<std::byte> block(kBlock);
  while (bytes > 0) {
    const ssize_t got = recv(socket.descriptor(), block.data(), std::min(bytes, kBlock), 0);
    if (got == 0) throw wan::Error("the stream ended early");
    if (got > 0)
      bytes -= static_cast<std::size_t>(got);
    else
      wait_for(socket, POLLIN);
  }
}

// Of this process's threads whose names begin so.
double cpu_of(const std::string& threads) {
  double ticks = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "stat");
    std::string text;
    std::getline(file, text);
    const std::size_t name = text.find('(') + 1, after = text.rfind(')');
    if (after == std::string::npos || text.compare(name, threads.size(), threads) != 0) continue;
    std::istringstream rest(text.substr(after + 1));
    std::string skipped;
    for (int i = 0; i < 11; ++i) rest >> skipped;
    double user = 0, system = 0;
    rest >> user >> system;
    ticks += user + system;
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

struct Flow {
  double rate, cpu;  // bytes/s, seconds per byte
};

Flow measure(const std::vector<wan::Socket>& from, const std::vector<wan::Socket>& to, std::size_t bytes) {
  const auto start = Clock::now();
  const double before = cpu_of("relay");
  std::vector<std::thread> threads;
  for (const wan::Socket& socket : from) threads.emplace_back([&socket, bytes] { pour(socket, bytes); });
  for (const wan::Socket& socket : to) threads.emplace_back([&socket, bytes] { swallow(socket, bytes); });
  for (std::thread& thread : threads) thread.join();
  const double all = static_cast<double>(bytes * from.size());
  return {all / std::chrono::duration<double>(Clock::now() - start).count(), (cpu_of("relay") - before) / all};
}

// One session after the other, so that the two ends are in the same order.
Flow through(const wan::Endpoint& entry, const wan::Socket& sink, const wan::Key* key, int sessions,
             std::size_t bytes) {
  std::vector<wan::Socket> from, to;
  for (int i = 0; i < sessions; ++i) {
    from.push_back(key ? admitted(entry, *key) : reach(entry));
    wait_for(sink, POLLIN);
    wan::Address peer;
    to.push_back(wan::accept_from(sink.descriptor(), peer));
  }
  return measure(from, to, bytes / static_cast<std::size_t>(sessions));
}

void run(bench::Report& report, std::size_t bytes) {
  wan::set_log_sink([](wan::LogLevel, const std::string&) {});
  const std::string file =
      (std::filesystem::temp_directory_path() / fmt::format("maki-bench-relay-{}.key", getpid())).string();
  const wan::Key key = wan::Key::make();
  wan::write_key(key, file);
  const wan::Socket sink = wan::listen_on({"127.0.0.1", 0}, wan::PathSettings{});
  wan::RelaySettings settings;
  settings.listen = {"127.0.0.1", 0};
  settings.key_files = {file};
  settings.destinations["sink"] = {"127.0.0.1", wan::local_address(sink.descriptor()).port()};
  const wan::Relay relay(settings);
  std::filesystem::remove(file);
  for (const int sessions : {1, 4, 16}) {
    const Flow direct = through(settings.destinations["sink"], sink, nullptr, sessions, bytes);
    const Flow relayed = through(relay.address(), sink, &key, sessions, bytes);
    report.add(fmt::format("direct, {} streams", sessions), 1e-9 * direct.rate, "GB/s");
    report.add(fmt::format("through the relay, {} streams", sessions), 1e-9 * relayed.rate, "GB/s");
    report.add(fmt::format("CPU of the relay, {} streams", sessions), 1e9 * relayed.cpu, "s/GB");
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What a relay passes on over loopback.", "bench_wan_relay");
  std::string json;
  double gigabytes = 4;
  app.add_option("--json", json);
  app.add_option("--gb", gigabytes, "of each measurement")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return maki::bench::run_or_say("bench_wan_relay", [&] {
    maki::bench::Report report("wan_relay", json);
    run(report, static_cast<std::size_t>(1e9 * gigabytes));
    report.print();
  });
}
