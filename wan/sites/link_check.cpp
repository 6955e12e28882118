#include "wan/sites/link_check.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <thread>

#include "wan/net/error.hpp"
#include "wan/net/settings.hpp"
#include "wan/sites/link_start.hpp"
#include "wan/sites/ring.hpp"
#include "wan/sites/ring_wire.hpp"

namespace maki::sites {
namespace {

using wan::seconds_since;
using wan::WallClock;

constexpr double kDefaultWait = 60;
constexpr double kPatience = 30;  // seconds until a site that stops answering ends the measurement
constexpr int kPings = 6;
constexpr double kBulkTime = 3;  // seconds for each direction
constexpr std::size_t kChunk = 256 << 10;
constexpr std::size_t kFirstWindow = 4 << 20, kLastWindow = 128 << 20;  // bytes in flight
constexpr std::size_t kMostBytes = std::size_t{256} << 20;
constexpr wan::Tag kNumbersTag = kCheckTag, kBulkTag = kCheckTag + 1;

double wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Bytes that are sent; never freed, since a path that was given up may still read them.
const std::vector<std::byte>& zeros() {
  static const auto* const bytes = new std::vector<std::byte>(kChunk);
  return *bytes;
}

void await(wan::Request& request) {
  if (!request.wait_for(kPatience)) throw wan::Error("it stopped answering during the measurement");
}

void send_numbers(wan::Path& path, std::initializer_list<double> numbers) {
  path.start_send(kNumbersTag, std::as_bytes(std::span(numbers.begin(), numbers.size())));  // few: copied
}

std::vector<double> receive_numbers(wan::Path& path, std::size_t count) {
  wan::Request request = path.start_receive_any(kNumbersTag, 1024);
  await(request);
  const wan::Bytes bytes = request.take();
  if (bytes.size != count * sizeof(double)) throw wan::Error("it answers something else than was asked");
  std::vector<double> numbers(count);
  std::memcpy(numbers.data(), bytes.data.get(), bytes.size);
  return numbers;
}

// Sends at the full rate for kBulkTime. The window grows as long as it is acknowledged within 1.5 s.
void send_bulk(wan::Path& path) {
  const auto begun = WallClock::now();
  std::deque<wan::Request> in_flight;
  std::size_t window = kFirstWindow, sent = 0;
  auto round = begun;
  std::size_t round_bytes = 0;
  while (seconds_since(begun) < kBulkTime && sent < kMostBytes) {
    while (in_flight.size() * kChunk < window) {
      in_flight.push_back(path.start_send(kBulkTag, zeros()));
      sent += kChunk;
    }
    await(in_flight.front());
    in_flight.pop_front();
    round_bytes += kChunk;
    if (round_bytes < window) continue;
    if (seconds_since(round) < 1.5) window = std::min(2 * window, kLastWindow);
    round_bytes = 0;
    round = WallClock::now();
  }
  path.start_send(kBulkTag, std::span<const std::byte>());
  for (wan::Request& request : in_flight) await(request);
}

// The rate (bytes/s) over the second half of the messages, when the streams have reached their rate.
double receive_bulk(wan::Path& path) {
  std::vector<WallClock::time_point> times;
  for (;;) {
    wan::Request request = path.start_receive_any(kBulkTag, kChunk);
    await(request);
    if (request.size() == 0) break;
    if (times.size() * kChunk >= kMostBytes + kLastWindow) throw wan::Error("it sends more than the measurement takes");
    times.push_back(request.done_at());
    request.take();
  }
  if (times.size() < 4) return 0;
  std::sort(times.begin(), times.end());
  const std::size_t middle = times.size() / 2;
  const double seconds = std::chrono::duration<double>(times.back() - times[middle]).count();
  return seconds > 0 ? static_cast<double>((times.size() - 1 - middle) * kChunk) / seconds : 0;
}

// The caller leads the measurement; measure_as_called() answers in the same order.
void measure_as_caller(wan::Path& path, LinkCheck& link) {
  for (int i = 0; i < kPings; ++i) {
    const double asked = wall_clock();
    const auto begun = WallClock::now();
    send_numbers(path, {0});
    const double theirs = receive_numbers(path, 1)[0], trip = seconds_since(begun);
    if (i > 0 && trip >= link.round_trip) continue;
    link.round_trip = trip;
    link.clock_difference = theirs - (asked + trip / 2);
  }
  send_numbers(path, {link.round_trip, -link.clock_difference});
  send_bulk(path);
  link.rate_out = receive_numbers(path, 1)[0];
  link.rate_in = receive_bulk(path);
  send_numbers(path, {link.rate_in});
}

void measure_as_called(wan::Path& path, LinkCheck& link) {
  for (int i = 0; i < kPings; ++i) {
    receive_numbers(path, 1);
    send_numbers(path, {wall_clock()});
  }
  const auto found = receive_numbers(path, 2);
  link.round_trip = found[0];
  link.clock_difference = found[1];
  link.rate_in = receive_bulk(path);
  send_numbers(path, {link.rate_in});
  send_bulk(path);
  link.rate_out = receive_numbers(path, 1)[0];
}

LinkCheck check_link(StartedLink& started, const Hello& ours) {
  LinkCheck link;
  link.site = started.site;
  link.peer_calls = started.peer_calls;
  link.reachable = started.up;
  link.error = started.problem;
  if (!started.up) return link;
  link.version = started.theirs.version;
  link.differences = differences(ours, started.theirs);
  link.waits_to_run = started.theirs.purpose == Purpose::kRun;
  if (link.waits_to_run || started.theirs.protocol != ours.protocol) return link;
  try {
    if (started.peer_calls)
      measure_as_called(started.path, link);
    else
      measure_as_caller(started.path, link);
  } catch (const wan::Error& error) {
    link.error = error.what();
  }
  return link;
}

}  // namespace

std::vector<LinkCheck> check_links(const RingPlan& plan) {
  RingPlan patient = plan;
  const auto shorten = [](wan::PathSettings& path) { path.patience = std::min(path.patience, kPatience); };
  shorten(patient.path);
  for (SitePlace& site : patient.sites)
    if (site.onward) shorten(site.onward->path);
  const double wait = plan.wait_limit > 0 ? plan.wait_limit : kDefaultWait;
  wan::Context context(2);
  return translate_errors([&] {
    LinkStart start(patient, Purpose::kCheck, context);
    start.run(false, wait);
    std::vector<LinkCheck> found(start.links().size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < found.size(); ++i)
      threads.emplace_back([&, i] {
        StartedLink& started = start.links()[i];
        found[i] = check_link(started, start.ours());
        if (started.path.valid()) started.path.close();
      });
    for (std::thread& thread : threads) thread.join();
    return found;
  });
}

}  // namespace maki::sites
