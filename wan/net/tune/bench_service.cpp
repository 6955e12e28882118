#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "wan/net/byte_codec.hpp"
#include "wan/net/listener.hpp"
#include "wan/net/tune/bench.hpp"

namespace maki::wan {

namespace {

using Action = BenchOrder::Action;
using What = BenchReply::What;

constexpr std::uint64_t kNanosecond = 1'000'000'000;

// The caller's settings for our end, as far as a live path can change them.
void read_order(const BenchOrder& order, PathSettings& settings) {
  settings.send_chunk = order.send_chunk;
  settings.receive_chunk = order.receive_chunk;
  settings.pacing_rate = order.pacing;
}
void adopt(Path& path, const BenchOrder& order) {
  PathSettings settings = path.settings();
  read_order(order, settings);
  path.change(settings);  // checks them
}

constexpr double kStopEvery = 0.25;  // seconds
constexpr double kLongestRest = 3;   // times longest_silence: for a caller that is there and does nothing

// The path of a caller. No wait on it is endless: others may wait for theirs, and `stop` ends it.
class CallerPath {
 public:
  CallerPath(Path& path, const BenchService& service) : path_(path), service_(service) {}
  Path& operator*() { return path_; }
  Path* operator->() { return &path_; }

  BenchOrder hear() {
    Request order = path_.start_receive_any(kOrders, kMaxBenchMessage);
    await(order, "it orders nothing", [] { return std::uint64_t{0}; });
    return decode_bench_order(order.take().view());
  }
  void reply(const BenchReply& reply) { send(kReplies, encode(reply)); }
  void send(Tag tag, std::span<const std::byte> message) { finish(path_.start_send(tag, message)); }
  // Waits for a transfer.
  void finish(Request transfer) {
    await(transfer, "nothing moves", [this] {
      const PathStatus now = path_.status();
      return now.received + now.sent - now.outstanding;
    });
  }
  void sleep_until(std::uint64_t time) {
    for (std::uint64_t now = nanoseconds_now(); now < time; now = nanoseconds_now()) {
      if (service_.stop()) end(kStopped);
      std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(time - now, kNanosecond / 4)));
    }
  }

 private:
  static constexpr const char* kStopped = "the measurement was ended here";

  // `moved`: changes as long as the caller does its part.
  template <class Moved>
  void await(Request& request, const char* rest, Moved moved) {
    std::uint64_t before = 0;
    auto since = WallClock::now();
    while (!request.wait_for(kStopEvery)) {
      if (service_.stop()) end(kStopped);
      if (const std::uint64_t now = moved(); std::exchange(before, now) != now) since = WallClock::now();
      if (seconds_since(since) >= kLongestRest * service_.longest_silence)
        end(fmt::format("{}, and others may wait: it was ended", rest));
    }
  }
  // Closes the path first: no transfer uses its buffer after this.
  [[noreturn]] void end(const std::string& why) {
    path_.close(0);
    throw Error(why);
  }

  Path& path_;
  const BenchService& service_;
};

class Server {
 public:
  explicit Server(const BenchService& service) : service_(service), settings_(service.settings), local_(service.local) {
    settings_.patience = std::min(settings_.patience, service.longest_silence);
    listen();
    service_.listening(local_);
  }

  void run() {
    bool finished = false;
    while (!(finished && service_.once) && !service_.stop()) {
      std::optional<Accepted> caller = listener_->accept_for(kStopEvery);
      if (!caller) continue;
      try {
        finished = serve(*caller);
      } catch (const Error& error) {
        if (!listener_) throw;  // nobody could call any more
        finished_ = true;
        service_.report(fmt::format("{}: {}", caller->path.status().peer, error.what()));
      }
    }
  }

 private:
  void listen() {
    listener_.reset();
    listener_ = std::make_unique<Listener>(local_, service_.security, settings_, ListenerLimits{}, service_.relay);
    if (!service_.relay.used()) local_ = listener_->address();  // keeps its port for the next time
  }

  // True when the caller has finished, false when it will call again.
  bool serve(Accepted& caller) {
    CallerPath path(caller.path, service_);
    const BenchOrder hello = path.hear();
    if (hello.action != Action::kHello) throw ProtocolError("the peer's measurement began without a hello");
    PathSettings asked = settings_;
    asked.window = hello.window;
    asked.congestion = hello.congestion;
    read_order(hello, asked);
    asked.check();
    const bool same_sockets = asked.window == settings_.window && asked.congestion == settings_.congestion;
    const PathSettings before = std::exchange(settings_, asked);
    if (!same_sockets) {  // options of the listening socket, which accepted ones inherit
      try {
        listen();
      } catch (const Error& error) {
        settings_ = before;
        listen();
        path.reply({.what = What::kRefused});
        path->close(10);
        throw;
      }
      path.reply({.what = What::kAgain});
      path->close(10);
      return false;
    }
    adopt(*path, hello);
    path.reply({.what = What::kWelcome, .kernel = KernelLimits::of_this_machine()});
    if (finished_) service_.report(fmt::format("{} measures", path->status().peer));  // else it goes on
    finished_ = follow(path);
    path->close(10);
    return finished_;
  }

  // Until the caller has finished: true, or leaves to call again with other settings: false.
  bool follow(CallerPath& path) {
    for (;;) {
      const BenchOrder order = path.hear();
      if (order.action == Action::kBye || order.action == Action::kLater) return order.action == Action::kBye;
      carry_out(order, path);
    }
  }

  void carry_out(const BenchOrder& order, CallerPath& path) {
    switch (order.action) {
      case Action::kChange: adopt(*path, order); return path.reply({.what = What::kChanged});
      case Action::kEcho: return echo(order.transfer.count, path);
      case Action::kMove: return move(order, path);
      case Action::kCpu: return path.reply({.what = What::kUsed, .seconds = cpu_seconds()});
      default: throw ProtocolError("the peer's measurement began a second time");
    }
  }

  static void echo(std::uint64_t count, CallerPath& path) {
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t word = 0;
      path.finish(path->start_receive(kEchoes, std::as_writable_bytes(std::span(&word, 1))));
      word = nanoseconds_now();
      path.send(kEchoes, std::as_bytes(std::span(&word, 1)));
    }
  }

  void move(const BenchOrder& order, CallerPath& path) {
    const auto payload = out_.of(order.back);
    TransferQueue arrivals(order.transfer, in_,
                           [&](std::span<std::byte> place) { return path->start_receive(kPayload, place); });
    path.reply({.what = What::kReady});
    path.sleep_until(std::min(order.at, nanoseconds_now() + 60 * kNanosecond));
    const std::uint64_t began = nanoseconds_now();
    const Request sending = order.back > 0 ? path->start_send(kPayload, payload) : Request();
    const auto at = arrivals.finish([&](const Request& one) { path.finish(one); });
    path.reply({.what = What::kDone, .at = nanoseconds(at), .began = began});
    path.finish(sending);
  }

  const BenchService& service_;
  PathSettings settings_;
  Endpoint local_;
  bool finished_ = true;  // the last caller, if any
  // They outlive the path, whose transfers may be under way where a measurement ends by an error.
  PayloadBuffer in_, out_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace

void serve_bench(const BenchService& service) { Server(service).run(); }

namespace {

constexpr std::uint64_t kMany = 1 << 20, kLargestNumber = std::uint64_t{1} << 62;
constexpr double kHighestRate = 1e15, kLongestUse = 1e12;
constexpr std::size_t kLongestName = 64;

// The name of a congestion control: shown to users.
template <class Io, class Text>
void name_field(Io& io, Text& name) {
  io.field(name, kLongestName);
  if constexpr (std::is_same_v<Io, ByteReader>)
    if (printable(name) != name) io.fail("a name that none can have");
}

template <class Io>
void fields(Io& io, Of<Io, KernelLimits>& kernel) {
  for (auto* bound : {&kernel.rmem_max, &kernel.wmem_max, &kernel.tcp_rmem_max, &kernel.tcp_wmem_max})
    io.field(*bound, 0, kLargestNumber, "a bound of the kernel is too large");
  io.field(kernel.slow_start_after_idle);
  name_field(io, kernel.congestion);
  io.list(kernel.congestions, std::uint16_t{32}, "too many congestion controls",
          [](Io& one, auto& name) { name_field(one, name); });
}

template <class Io>
void fields(Io& io, Of<Io, BenchOrder>& order) {
  using Action = BenchOrder::Action;
  io.field(order.action, Action::kHello, Action::kLater, "an order that is unknown here");
  for (auto* size : {&order.window, &order.send_chunk, &order.receive_chunk, &order.transfer.bytes, &order.back})
    io.field(*size, 0, kLargestTransfer, "a size is too large");
  name_field(io, order.congestion);
  io.field(order.pacing, 0, kHighestRate, "no rate");
  io.field(order.transfer.count, 0, kMany, "too many messages");
  io.field(order.transfer.flight, 1, kMany, "none or too many messages at once");
  io.field(order.at);
}

template <class Io>
void fields(Io& io, Of<Io, BenchReply>& reply) {
  using What = BenchReply::What;
  io.field(reply.what, What::kWelcome, What::kUsed, "a reply that is unknown here");
  fields(io, reply.kernel);
  io.field(reply.at);
  io.field(reply.began);
  io.field(reply.seconds, 0, kLongestUse, "no time");
}

template <class Message>
std::vector<std::byte> encoded(const Message& message) {
  ByteWriter out;
  fields(out, message);
  return out.take();
}

template <class Message>
Message decoded(std::span<const std::byte> bytes) {
  ByteReader in(bytes, "a message of the peer's measurement", "the peer does not measure as 'maki wan bench' does");
  Message message;
  fields(in, message);
  in.end();
  return message;
}

}  // namespace

std::vector<std::byte> encode(const BenchOrder& order) { return encoded(order); }
std::vector<std::byte> encode(const BenchReply& reply) { return encoded(reply); }
BenchReply decode_bench_reply(std::span<const std::byte> bytes) { return decoded<BenchReply>(bytes); }

BenchOrder decode_bench_order(std::span<const std::byte> bytes) {
  const auto order = decoded<BenchOrder>(bytes);
  if (order.transfer.bytes * order.transfer.flight > kLargestTransfer)
    throw ProtocolError("the peer's measurement ordered a transfer that is too large");
  return order;
}

}  // namespace maki::wan
