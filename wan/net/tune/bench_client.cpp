#include "wan/net/tune/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace maki::wan {

std::span<std::byte> PayloadBuffer::of(std::size_t bytes) {
  constexpr std::size_t kBlock = 1 << 20;
  const std::size_t before = bytes_.size();
  if (before < bytes) bytes_.resize(bytes);
  std::uint64_t state = 88172645463325252ull;
  for (std::size_t i = before; i < std::min(bytes_.size(), kBlock); ++i) {  // xorshift (Marsaglia 2003)
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    bytes_[i] = static_cast<std::byte>(state >> 32);
  }
  for (std::size_t i = std::max(before, kBlock); i < bytes_.size(); i += std::min(kBlock, bytes_.size() - i))
    std::memcpy(&bytes_[i], bytes_.data(), std::min(kBlock, bytes_.size() - i));
  return std::span(bytes_).first(bytes);
}

TransferQueue::TransferQueue(const TransferOrder& order, PayloadBuffer& memory, Start start)
    : order_(order), memory_(memory.of(order.bytes * order.flight)), start_(std::move(start)),
      under_way_(order.flight) {
  while (started_ < std::min(order_.count, order_.flight)) start_next();
}

void TransferQueue::start_next() {
  const std::uint64_t place = started_++ % order_.flight;
  under_way_[place] = start_(memory_.subspan(place * order_.bytes, order_.bytes));
}

std::chrono::steady_clock::time_point TransferQueue::finish(const std::function<void(Request&)>& wait) {
  std::chrono::steady_clock::time_point last{};
  for (std::uint64_t i = 0; i < order_.count; ++i) {
    Request& oldest = under_way_[i % order_.flight];
    wait(oldest);
    last = std::max(last, oldest.done_at());
    if (started_ < order_.count) start_next();
  }
  return last;
}

// ---- the side that calls; bench_service.cpp has the other ----------------------------------------------------------

namespace {

using Action = BenchOrder::Action;
using What = BenchReply::What;

constexpr double kClockAge = 20;     // seconds after which the clocks are compared again
constexpr double kStreamsWait = 20;  // for all streams of a path to come up
constexpr double kFirstReport = 3;   // seconds until the user reads why nothing happens
constexpr int kCalls = 5;

double seconds_of(std::uint64_t nanoseconds) { return 1e-9 * static_cast<double>(nanoseconds); }
double seconds_now() { return seconds_of(nanoseconds_now()); }

BenchOrder with_settings(BenchOrder::Action action, const Trial& trial) {
  return {.action = action,
          .window = trial.settings.window,
          .send_chunk = trial.settings.send_chunk,
          .receive_chunk = trial.settings.receive_chunk,
          .congestion = trial.settings.congestion,
          .pacing = trial.pacing_in};
}

// Equal but for what a live path can change.
bool same_sockets(const Trial& a, const Trial& b) {
  return a.settings.streams == b.settings.streams && a.settings.window == b.settings.window &&
         a.settings.congestion == b.settings.congestion;
}

}  // namespace

BenchClient::BenchClient(const Endpoint& peer, const Security& security, const RelayRoute& relay)
    : peer_(peer), security_(security), relay_(relay) {}

BenchClient::~BenchClient() { leave(Action::kBye); }

void BenchClient::leave(Action word) {
  if (!path_.valid()) return;
  try {
    path_.send(kOrders, encode(BenchOrder{.action = word}));
    path_.close(10);
  } catch (const Error&) {  // the path is lost already
  }
  path_ = Path();
}

void BenchClient::use(const Trial& trial) {
  if (!path_.valid() || !trial_ || !same_sockets(*trial_, trial)) {
    connect(trial);
  } else if (!(*trial_ == trial)) {
    path_.change(trial.settings);
    ask(with_settings(Action::kChange, trial), What::kChanged);
  }
  trial_ = trial;
}

void BenchClient::connect(const Trial& trial) {
  leave(Action::kLater);
  trial_.reset();  // until the peer has taken the new one
  round_trip_ = 0;
  offset_at_ = -1e9;
  for (int call = 0; call < kCalls; ++call) {
    path_ = Path::connect(peer_, security_, trial.settings, {"bench", relay_});
    await_streams(trial.settings.streams);
    if (greet(trial)) return;
    path_.close(10);
  }
  throw Error(fmt::format("the measurement at {} did not take our settings", peer_.text()),
              "another caller changes them", "let one measure at a time");
}

bool BenchClient::greet(const Trial& trial) {
  const BenchReply reply = [&] {
    try {
      path_.send(kOrders, encode(with_settings(Action::kHello, trial)));
      Request welcome = path_.start_receive_any(kReplies, kMaxBenchMessage);
      if (!welcome.wait_for(kFirstReport))
        log(LogLevel::kInfo, fmt::format("waiting for {}: another caller may measure there", peer_.text()));
      welcome.wait();
      return decode_bench_reply(welcome.take().view());
    } catch (const PathError& error) {
      throw PathError(fmt::format("{} did not answer as a measurement does", peer_.text()), error.what(),
                      "see that 'maki wan bench --listen' runs there, and what it says");
    }
  }();
  if (reply.what == What::kAgain) return false;
  if (reply.what == What::kRefused) {
    throw Error(fmt::format("{} cannot listen with our window or congestion control", peer_.text()),
                "its own output says why");
  }
  if (reply.what != What::kWelcome) {
    throw ProtocolError(fmt::format("{} does not measure", peer_.text()), "it answered otherwise",
                        "start 'maki wan bench --listen' there");
  }
  there_ = reply.kernel;
  return true;
}

// connect() returns with the first stream; the others follow after some round trips.
void BenchClient::await_streams(int streams) {
  const double until = now() + kStreamsWait;
  while (path_.status().streams_up < std::min(streams, path_.status().streams) && now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

BenchReply BenchClient::hear() { return decode_bench_reply(path_.receive_any(kReplies, kMaxBenchMessage).view()); }

BenchReply BenchClient::ask(const BenchOrder& order, What expected) {
  path_.send(kOrders, encode(order));
  const BenchReply reply = hear();
  if (reply.what != expected) throw ProtocolError(fmt::format("{} answered otherwise than it was asked", peer_.text()));
  return reply;
}

std::vector<double> BenchClient::round_trips(int count) {
  path_.send(kOrders,
             encode(BenchOrder{.action = Action::kEcho, .transfer = {.count = static_cast<std::uint64_t>(count)}}));
  std::vector<double> times;
  double shortest = 1e9;
  for (int i = 0; i < count; ++i) {
    std::uint64_t word = 0;
    const double begin = seconds_now();
    path_.send(kEchoes, std::as_bytes(std::span(&word, 1)));
    path_.receive(kEchoes, std::as_writable_bytes(std::span(&word, 1)));
    const double end = seconds_now();
    times.push_back(end - begin);
    if (end - begin >= shortest) continue;
    shortest = end - begin;
    offset_ = seconds_of(word) - (begin + end) / 2;  // assuming equal delays both ways
  }
  offset_at_ = now();
  round_trip_ = round_trip_ == 0 ? shortest : std::min(round_trip_, shortest);
  return times;
}

void BenchClient::keep_clock() {
  if (now() - offset_at_ > kClockAge) round_trips(2);
}

double BenchClient::of_theirs(std::uint64_t nanoseconds) const { return seconds_of(nanoseconds) - offset_; }

Timing BenchClient::transfer(Way way, std::size_t bytes) {
  bytes = std::min<std::size_t>(bytes, kLargestTransfer);
  return move(way == Way::kIn ? TransferOrder{0, 0, 1} : TransferOrder{bytes, 1, 1}, way == Way::kOut ? 0 : bytes);
}

Timing BenchClient::move(const TransferOrder& there, std::size_t back) {
  out_.of(there.bytes * there.flight);
  keep_clock();
  Request arrival = back > 0 ? path_.start_receive(kPayload, in_.of(back)) : Request();
  // Both ways begin together, late enough for the order to have arrived; a single one at once.
  const double begin_at = there.count > 0 && back > 0 ? seconds_now() + round_trip_ + 0.01 : 0;
  const auto at = static_cast<std::uint64_t>(1e9 * std::max(begin_at + offset_, 0.0));
  ask({.action = Action::kMove, .transfer = there, .back = back, .at = at}, What::kReady);
  std::this_thread::sleep_for(std::chrono::duration<double>(std::max(begin_at - seconds_now(), 0.0)));
  const double begin = seconds_now();
  TransferQueue sends(there, out_, [&](std::span<std::byte> place) { return path_.start_send(kPayload, place); });
  sends.finish();
  arrival.wait();
  const BenchReply done = hear();
  return {there.count > 0 ? of_theirs(done.at) - begin : 0,
          back > 0 ? seconds_of(nanoseconds(arrival.done_at())) - of_theirs(done.began) : 0};
}

void BenchClient::rest(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }
double BenchClient::now() const { return seconds_now(); }

CpuUse BenchClient::cpu() { return {cpu_seconds(), ask({.action = Action::kCpu}, What::kUsed).seconds}; }

}  // namespace maki::wan
