// The protocol of a measurement over the path that it measures: orders of the calling side, replies of the called side,
// echoes, and dummy payload.
//
//   hello  -> welcome, or again: the listener was restarted, call again; or refused: no such sockets
//   change -> changed
//   echo   8 bytes each way, `count` times; the reply has the called side's clock, in ns
//   move   -> ready, then payload: messages there (`count`, `flight` of them at once), and one back from a given time on
//          -> done: arrival of the last byte there, and begin of the sending back
//   cpu    -> used
//   bye, or later: the caller will call again with other settings
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wan/net/error.hpp"
#include "wan/net/path.hpp"
#include "wan/net/settings.hpp"
#include "wan/net/tune/measure.hpp"

namespace maki::wan {

inline constexpr Tag kOrders = 1, kReplies = 2, kEchoes = 3, kPayload = 4;
inline constexpr std::uint64_t kLargestTransfer = std::uint64_t{1} << 30;

inline std::uint64_t nanoseconds(std::chrono::steady_clock::time_point time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}
inline std::uint64_t nanoseconds_now() { return nanoseconds(std::chrono::steady_clock::now()); }

inline double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// `count` messages of `bytes` each, at most `flight` of them at once.
struct TransferOrder {
  std::uint64_t bytes = 0, count = 1, flight = 1;
};

struct BenchOrder {
  enum class Action : std::uint32_t { kHello = 1, kChange, kEcho, kMove, kCpu, kBye, kLater };
  Action action = Action::kBye;
  // hello; change without window and congestion. pacing: of what the called side sends, bytes/s.
  std::uint64_t window = 0, send_chunk = 0, receive_chunk = 0;
  std::string congestion = {};
  double pacing = 0;
  TransferOrder transfer = {};
  std::uint64_t back = 0;  // move: bytes
  std::uint64_t at = 0;    // move: when they are sent, ns of the called side's clock
};

struct BenchReply {
  enum class What : std::uint32_t { kWelcome = 1, kAgain, kRefused, kChanged, kReady, kDone, kUsed };
  What what = What::kWelcome;
  KernelLimits kernel = {};
  std::uint64_t at = 0, began = 0;  // ns of the called side's clock
  double seconds = 0;               // of processor time
};

inline constexpr std::size_t kMaxBenchMessage = 4096;
std::vector<std::byte> encode(const BenchOrder& order);
std::vector<std::byte> encode(const BenchReply& reply);
// Throw ProtocolError for anything that encode() cannot have produced.
BenchOrder decode_bench_order(std::span<const std::byte> bytes);
BenchReply decode_bench_reply(std::span<const std::byte> bytes);

// Payload memory: touched beforehand, and incompressible.
class PayloadBuffer {
 public:
  std::span<std::byte> of(std::size_t bytes);

 private:
  std::vector<std::byte> bytes_;
};

// Starts sends or receives of an order's messages, the first `flight` of them at once.
class TransferQueue {
 public:
  using Start = std::function<Request(std::span<std::byte>)>;
  TransferQueue(const TransferOrder& order, PayloadBuffer& memory, Start start);
  // Starts the others as earlier ones end; returns the end of the last. `wait`: for one of them.
  std::chrono::steady_clock::time_point finish(const std::function<void(Request&)>& wait = [](Request& one) {
    one.wait();
  });

 private:
  void start_next();

  TransferOrder order_;
  std::span<std::byte> memory_;
  Start start_;
  std::vector<Request> under_way_;  // message i is at i % flight
  std::uint64_t started_ = 0;
};

// The calling side of a measurement: a MeasuredLink over real paths to `serve_bench`.
class BenchClient : public MeasuredLink {
 public:
  // Nothing is connected before use().
  BenchClient(const Endpoint& peer, const Security& security, const RelayRoute& relay = {});
  ~BenchClient() override;  // says bye, so that a server with `once` ends

  void use(const Trial& trial) override;
  std::vector<double> round_trips(int count) override;
  Timing transfer(Way way, std::size_t bytes) override;
  void rest(double seconds) override;
  double now() const override;
  CpuUse cpu() override;
  const KernelLimits& kernel_here() const override { return here_; }
  const KernelLimits& kernel_there() const override { return there_; }
  // Sends messages, several in flight: seconds from the first's begin to the last's arrival.
  double send_many(const TransferOrder& order) { return move(order, 0).out; }
  PathStatus status() const { return path_.status(); }

 private:
  void connect(const Trial& trial);
  bool greet(const Trial& trial);  // false: call again
  void await_streams(int streams);
  void leave(BenchOrder::Action word);
  BenchReply ask(const BenchOrder& order, BenchReply::What expected);
  BenchReply hear();
  Timing move(const TransferOrder& there, std::size_t back);
  void keep_clock();
  double of_theirs(std::uint64_t nanoseconds) const;  // a time of the called side, in seconds of our clock

  Endpoint peer_;
  Security security_;
  RelayRoute relay_;
  Path path_;
  std::optional<Trial> trial_;
  KernelLimits here_ = KernelLimits::of_this_machine(), there_;
  PayloadBuffer in_, out_;
  double offset_ = 0;        // clock of the called side less ours, seconds
  double offset_at_ = -1e9;  // time of that comparison
  double round_trip_ = 0;    // the shortest so far on this connection
};

// The called side of a measurement: follows the caller's orders, with the caller's settings.
struct BenchService {
  Endpoint local;
  Security security;
  PathSettings settings;  // those that the caller does not set: timeouts, limits
  RelayRoute relay;
  double longest_silence = 20;  // of a caller, seconds, as others wait for its end; or the patience, if below
  bool once = false;            // ends with the first caller's bye
  std::function<void(const Endpoint&)> listening = [](const Endpoint&) {};     // with the address, once it listens
  std::function<void(const std::string&)> report = [](const std::string&) {};  // callers that connect and leave
  std::function<bool()> stop = [] { return false; };                           // called a few times a second
};

// Serves one caller after the other. Returns when `stop` is true, also amid a measurement, or with
// `once` after a finished caller. Throws Error, SecurityError if listening fails; a lost or faulty caller ends only its
// own measurement.
void serve_bench(const BenchService& service);

}  // namespace maki::wan
