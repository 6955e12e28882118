// How much of what sockets can do over loopback a path gives: beside iperf3 (where it is installed) and a plain socket
// loop in the same run. Two processes; the receiver's times. CPU seconds are those of both processes together.
#include <CLI/CLI.hpp>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <thread>

#include "bench/report.hpp"
#include "wan/net/error.hpp"
#include "wan/net/secure/channel.hpp"
#include "wan/net/secure/key.hpp"
#include "wan/net/tune/bench.hpp"

namespace {

using namespace maki;
using Clock = std::chrono::steady_clock;

struct Options {
  double seconds = 0.6;  // of one measurement, about
  std::string json;
  bool profile = false;  // one long transfer only
  bool tls = false;
  double strangers = 0;  // that call the server, each second
};

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

// The least that two processes can do over a socket: one writes blocks, the other reads them. Bytes/s at the receiver
// over loopback with one connection.
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

// Callers without the server's key in a process of its own: so many handshakes each second, all of them refused.
class StrangerProcess {
 public:
  StrangerProcess(const wan::Endpoint& to, const std::string& key_file, double rate) {
    if (rate > 0) process_ = fork();
    if (process_ != 0) return;
    wan::set_log_sink([](wan::LogLevel, const std::string&) {});
    const auto security = wan::SecurityContext::make({.key_files = {key_file}});
    const pid_t parent = getppid();
    for (auto next = Clock::now(); getppid() == parent; next += std::chrono::microseconds(std::llround(1e6 / rate))) {
      std::this_thread::sleep_until(next);
      call(to, security);
    }
    _exit(0);
  }
  ~StrangerProcess() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  StrangerProcess(const StrangerProcess&) = delete;
  StrangerProcess& operator=(const StrangerProcess&) = delete;

 private:
  static void call(const wan::Endpoint& to, const std::shared_ptr<const wan::SecurityContext>& security) try {
    const auto channel =
        wan::make_channel(security, wan::start_connect(wan::resolve(to).front(), {}), wan::Side::kConnecting);
    wait_for(*channel, POLLOUT);
    while (channel->handshake() == wan::IoStatus::kWantRead) wait_for(*channel, POLLIN);
  } catch (const wan::Error&) {  // as it should be
  }
  static void wait_for(const wan::Channel& channel, short event) {
    pollfd one{channel.descriptor(), event, 0};
    if (poll(&one, 1, 5000) != 1) throw wan::Error("no answer");
  }

  pid_t process_ = -1;
};

// A measurement's server in a process of its own.
class ServerProcess {
 public:
  explicit ServerProcess(const wan::Security& security) {
    int ends[2];
    if (pipe(ends) != 0) throw wan::Error("no pipe");
    process_ = fork();
    if (process_ == 0) serve(security, ends[1]);
    close(ends[1]);
    std::uint16_t port = 0;
    if (read(ends[0], &port, sizeof port) != sizeof port) throw wan::Error("the server did not start");
    close(ends[0]);
    address = {"127.0.0.1", port};
  }
  ~ServerProcess() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  wan::Endpoint address;

 private:
  [[noreturn]] static void serve(const wan::Security& security, int pipe_end) {
    wan::set_log_sink([](wan::LogLevel, const std::string&) {});
    wan::BenchService service;
    service.local = {"127.0.0.1", 0};
    service.security = security;
    service.listening = [&](const wan::Endpoint& where) {
      if (write(pipe_end, &where.port, sizeof where.port) < 0) _exit(1);
    };
    const pid_t parent = getppid();
    service.stop = [parent] { return getppid() != parent; };
    try {
      wan::serve_bench(service);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "server: %s\n", error.what());
    }
    _exit(0);
  }

  pid_t process_ = -1;
};

// iperf3 with one stream, bytes/s at its receiver; 0 where there is none.
double iperf3(int block, double seconds) {
  const std::string port = std::to_string(20000 + getpid() % 20000);
  const std::string command = fmt::format(
      "command -v iperf3 >/dev/null || exit 1; (iperf3 -s -1 -B 127.0.0.1 -p {0} >/dev/null 2>&1 &) ; sleep 0.3; "
      "iperf3 -c 127.0.0.1 -p {0} -l {1} -t {2} -f k 2>/dev/null | awk '/receiver/ {{print $(NF-2)}}'; sleep 0.2",
      port, block, std::max(1, static_cast<int>(seconds + 0.5)));
  std::FILE* pipe = popen(command.c_str(), "r");
  double kilobits = 0;
  if (pipe == nullptr) return 0;
  if (std::fscanf(pipe, "%lf", &kilobits) != 1) kilobits = 0;
  pclose(pipe);
  return kilobits * 125;
}

struct Flow {
  double rate = 0, cpu = 0;  // bytes/s, seconds per GB of both processes
};

class Loopback {
 public:
  Loopback(const wan::Endpoint& address, const wan::Security& security, double seconds)
      : link_(address, security), seconds_(seconds) {}

  Flow flow(const wan::Trial& trial, std::size_t bytes) {
    link_.use(trial);
    wan::TransferOrder order{bytes, 0, std::clamp<std::uint64_t>((32u << 20) / bytes, 2, 64)};
    double rate = 0;
    for (order.count = std::max<std::uint64_t>((64u << 20) / bytes, 2); rate == 0;) {  // a first go: how many fit
      const double seconds = link_.send_many(order);
      rate = static_cast<double>(order.count * bytes) / seconds;
    }
    order.count = std::max<std::uint64_t>(static_cast<std::uint64_t>(rate * seconds_ / static_cast<double>(bytes)), 2);
    const wan::CpuUse before = link_.cpu();
    const double seconds = link_.send_many(order);
    const wan::CpuUse after = link_.cpu();
    const double sent = static_cast<double>(order.count * bytes);
    return {sent / seconds, (after.here - before.here + after.there - before.there) / sent * 1e9};
  }

  double latency(const wan::Trial& trial) {
    link_.use(trial);
    link_.round_trips(200);
    std::vector<double> times = link_.round_trips(3000);
    std::nth_element(times.begin(), times.begin() + 1500, times.end());
    return times[1500];
  }

 private:
  wan::BenchClient link_;
  double seconds_;
};

wan::Trial trial_of(int streams, std::size_t chunk) {
  wan::Trial trial;
  trial.settings.streams = streams;
  trial.settings.send_chunk = chunk;
  return trial;
}

class Bench {
 public:
  Bench(const Options& options, bench::Report& report, Loopback& plain, Loopback& tls)
      : options_(options), report_(report), plain_(plain), tls_(tls) {}

  void run() {
    one_stream();
    defaults();
    many_streams();
    report_.add("8 bytes there and back, plain", 1e6 * plain_.latency(trial_of(1, 64 << 10)), "us");
    report_.add("8 bytes there and back, TLS", 1e6 * tls_.latency(trial_of(1, 64 << 10)), "us");
  }

 private:
  void one_stream() {
    for (const int kilobytes : {64, 128, 256}) {
      const int block = kilobytes << 10;
      const double loop = socket_loop(static_cast<std::size_t>(block), options_.seconds);
      const double other = iperf3(block, options_.seconds);
      report_.add(fmt::format("plain sockets, blocks of {} kB", kilobytes), 1e-9 * loop, "GB/s");
      if (other > 0) report_.add(fmt::format("iperf3, blocks of {} kB", kilobytes), 1e-9 * other, "GB/s");
      for (const std::size_t message : {std::size_t{256} << 10, std::size_t{4} << 20, std::size_t{64} << 20}) {
        const Flow flow = plain_.flow(trial_of(1, static_cast<std::size_t>(block)), message);
        const std::string name =
            fmt::format("plain, 1 stream, chunks of {} kB, messages of {} kB", kilobytes, message >> 10);
        report_.add(name, 1e-9 * flow.rate, "GB/s");
        report_.add(name + (other > 0 ? ", of iperf3" : ", of plain sockets"),
                    100 * flow.rate / (other > 0 ? other : loop), "%");
      }
    }
  }

  void defaults() {
    for (const bool encrypted : {false, true}) {
      const Flow flow = (encrypted ? tls_ : plain_).flow(trial_of(1, wan::PathSettings{}.send_chunk), 64 << 20);
      const std::string name = fmt::format("{}, 1 stream, messages of 64 MiB", encrypted ? "TLS" : "plain");
      report_.add(name, 1e-9 * flow.rate, "GB/s");
      report_.add(name + ", CPU of both ends", flow.cpu, "s/GB");
    }
  }

  void many_streams() {
    for (const bool encrypted : {false, true}) {
      for (const int streams : {2, 4, 16, 256}) {
        const Flow flow = (encrypted ? tls_ : plain_).flow(trial_of(streams, wan::PathSettings{}.send_chunk), 64 << 20);
        report_.add(fmt::format("{}, {} streams, messages of 64 MiB", encrypted ? "TLS" : "plain", streams),
                    1e-9 * flow.rate, "GB/s");
      }
    }
  }

  const Options& options_;
  bench::Report& report_;
  Loopback &plain_, &tls_;
};

void run(const Options& options) {
  const auto key_file = std::filesystem::temp_directory_path() / fmt::format("maki_bench_wan_{}.key", getpid());
  const std::string wrong_file = key_file.string() + ".wrong";
  wan::write_key(wan::Key::make(), key_file);
  wan::write_key(wan::Key::make(), wrong_file);
  wan::Security insecure, keyed;
  insecure.insecure = true;
  keyed.key_files = {key_file};
  try {
    const ServerProcess plain_server(insecure), tls_server(keyed);  // before any thread is there
    const StrangerProcess strangers(tls_server.address, wrong_file, options.strangers);
    wan::set_log_sink([](wan::LogLevel, const std::string&) {});
    Loopback plain(plain_server.address, insecure, options.seconds), tls(tls_server.address, keyed, options.seconds);
    if (options.profile) {
      const Flow flow = (options.tls ? tls : plain).flow(trial_of(1, wan::PathSettings{}.send_chunk), 64 << 20);
      fmt::print("{:.3f} GB/s, {:.3f} CPU s/GB\n", 1e-9 * flow.rate, flow.cpu);
    } else {
      bench::Report report("wan_loopback", options.json);
      Bench(options, report, plain, tls).run();
      report.print();
    }
  } catch (...) {
    std::filesystem::remove(key_file);
    std::filesystem::remove(wrong_file);
    throw;
  }
  std::filesystem::remove(key_file);
  std::filesystem::remove(wrong_file);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Paths over loopback, beside iperf3 and plain sockets");
  app.add_option("--seconds", options.seconds, "of each measurement")->capture_default_str();
  app.add_option("--json", options.json);
  app.add_flag("--profile", options.profile, "one transfer only, for profilers");
  app.add_option("--strangers", options.strangers,
                 "handshakes without the key that come to the encrypted server each second")
      ->capture_default_str();
  app.add_flag("--tls", options.tls, "with --profile: encrypted");
  CLI11_PARSE(app, argc, argv);
  return bench::run_or_say("bench_wan_loopback", [&] { run(options); });
}
