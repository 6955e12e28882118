#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "wan/net/listener.hpp"
#include "wan/net/tune/bench.hpp"

namespace maki::wan {
namespace {

constexpr double kHighestRate = 1e15;
constexpr std::uint64_t kNanosecond = 1'000'000'000;

// What a caller wants of our end, of what a path can change; how many streams it has is the caller's affair.
void read_order(const Words& order, PathSettings& settings) {
  settings.send_chunk = order.integer("send_chunk", kLargestTransfer);
  settings.receive_chunk = order.integer("receive_chunk", kLargestTransfer);
  settings.pacing_rate = order.real("pacing", kHighestRate);
}
void adopt(Path& path, const Words& order) {
  PathSettings settings = path.settings();
  read_order(order, settings);
  path.change(settings);  // checks them
}

class Session {
 public:
  explicit Session(Path& path) : path_(path) {}

  // Until the caller has finished: true, or leaves to call again with other settings: false.
  bool run() {
    for (;;) {
      const Words order = receive_words(path_, kOrders);
      if (order.order() == "bye" || order.order() == "later") return order.order() == "bye";
      carry_out(order);
    }
  }

 private:
  void carry_out(const Words& order) {
    const std::string& what = order.order();
    if (what == "change")
      change(order);
    else if (what == "echo")
      echo(order.integer("count", kMostEchoes));
    else if (what == "take")
      take(TransferOrder::of(order));
    else if (what == "give")
      give(order.integer("bytes", kLargestTransfer));
    else if (what == "both")
      both(order);
    else if (what == "cpu")
      send_words(path_, kReplies, Words("used").set("seconds", cpu_seconds()));
    else
      throw ProtocolError(
          fmt::format("the peer's measurement ordered '{}', which is unknown here", what.substr(0, 40)));
  }

  void change(const Words& order) {
    adopt(path_, order);
    send_words(path_, kReplies, Words("changed"));
  }

  void echo(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t word = 0;
      path_.receive(kEchoes, std::as_writable_bytes(std::span(&word, 1)));
      word = nanoseconds_now();
      path_.send(kEchoes, std::as_bytes(std::span(&word, 1)));
    }
  }

  void take(const TransferOrder& order) {
    TransferQueue arrivals(order, in_,
                           [&](std::span<std::byte> place) { return path_.start_receive(kPayload, place); });
    send_words(path_, kReplies, Words("ready"));
    const auto at = arrivals.finish();
    send_words(path_, kReplies, Words("done").set("at", nanoseconds(at)));
  }

  void give(std::uint64_t bytes) {
    const auto payload = out_.of(bytes);
    const std::uint64_t at = nanoseconds_now();
    Request sending = path_.start_send(kPayload, payload);
    send_words(path_, kReplies, Words("given").set("at", at));
    sending.wait();
  }

  void both(const Words& order) {
    const std::uint64_t bytes = order.integer("bytes", kLargestTransfer);
    const std::uint64_t at = order.integer("at", ~std::uint64_t{0});
    const auto payload = out_.of(bytes);
    Request arrival = path_.start_receive(kPayload, in_.of(bytes));
    const std::uint64_t now = nanoseconds_now();
    if (at > now) std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(at - now, 60 * kNanosecond)));
    const std::uint64_t began = nanoseconds_now();
    Request sending = path_.start_send(kPayload, payload);
    arrival.wait();
    send_words(path_, kReplies, Words("done").set("at", nanoseconds(arrival.done_at())).set("began", began));
    sending.wait();
  }

  Path& path_;
  PayloadBuffer in_, out_;
};

class Server {
 public:
  explicit Server(const BenchService& service) : service_(service), settings_(service.settings), local_(service.local) {
    listen();
    service_.listening(local_);
  }

  void run() {
    bool finished = false;
    while (!(finished && service_.once) && !service_.stop()) {
      std::optional<Accepted> caller = listener_->accept_for(0.25);
      if (!caller) continue;
      try {
        finished = serve(*caller);
      } catch (const Error& error) {
        finished_ = true;
        service_.report(fmt::format("{}: {}", caller->path.status().peer, error.what()));
      }
    }
  }

 private:
  void listen() {
    listener_.reset();
    listener_ = std::make_unique<Listener>(local_, service_.security, settings_, ListenerLimits{}, service_.relay);
    if (!service_.relay.used()) local_ = listener_->address();  // the same port the next time
  }

  // True when the caller has finished, false when it will call again.
  bool serve(Accepted& caller) {
    Path& path = caller.path;
    const Words hello = receive_words(path, kOrders);
    if (hello.order() != "hello") throw ProtocolError("the peer's measurement began without a hello");
    PathSettings asked = service_.settings;
    asked.window = hello.integer("window", kLargestTransfer);
    asked.congestion = hello.text("congestion");
    read_order(hello, asked);
    asked.check();
    const bool same_sockets = asked.window == settings_.window && asked.congestion == settings_.congestion;
    const PathSettings before = std::exchange(settings_, asked);
    if (!same_sockets) {  // those of a listening socket, which accepted ones inherit
      try {
        listen();
      } catch (const Error& error) {
        settings_ = before;
        listen();
        send_words(path, kReplies, Words("refused"));
        path.close(10);
        throw;
      }
      send_words(path, kReplies, Words("again"));
      path.close(10);
      return false;
    }
    adopt(path, hello);
    Words welcome("welcome");
    KernelLimits::of_this_machine().write(welcome);
    send_words(path, kReplies, welcome);
    if (finished_) service_.report(fmt::format("{} measures", path.status().peer));  // else it goes on
    finished_ = Session(path).run();
    path.close(10);
    return finished_;
  }

  const BenchService& service_;
  PathSettings settings_;
  Endpoint local_;
  bool finished_ = true;  // the last caller, if any
  std::unique_ptr<Listener> listener_;
};

}  // namespace

void serve_bench(const BenchService& service) { Server(service).run(); }

}  // namespace maki::wan
