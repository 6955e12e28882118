#include "wan/sites/link_check.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <thread>

#include "wan/net/error.hpp"
#include "wan/sites/link_start.hpp"
#include "wan/sites/ring_wire.hpp"
#include "wan/sites/translate_errors.hpp"

namespace maki::sites {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kDefaultWait = 60;
constexpr double kPatience = 30;  // of a site that stops answering during the measurement
constexpr int kPings = 6;
constexpr double kSending = 3;  // seconds for each way
constexpr std::size_t kChunk = 256 << 10;
constexpr std::size_t kFirstWindow = 4 << 20, kLastWindow = 128 << 20;  // bytes on their way at once
constexpr std::size_t kMost = std::size_t{256} << 20;
constexpr wan::Tag kWords = kCheckTag, kBulk = kCheckTag + 1;

double since(Clock::time_point then) { return std::chrono::duration<double>(Clock::now() - then).count(); }
double wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Bytes that are sent; never freed, since a path that is given up may still look at them.
const std::vector<std::byte>& zeros() {
  static const auto* const bytes = new std::vector<std::byte>(kChunk);
  return *bytes;
}

void await(wan::Request& request) {
  if (!request.wait_for(kPatience)) throw wan::Error("it stopped answering during the measurement");
}

void put(wan::Path& path, std::initializer_list<double> words) {
  path.start_send(kWords, std::as_bytes(std::span(words.begin(), words.size())));  // few: copied
}

std::vector<double> get(wan::Path& path, std::size_t count) {
  wan::Request request = path.start_receive_any(kWords, 1024);
  await(request);
  const wan::Bytes bytes = request.take();
  if (bytes.size != count * sizeof(double)) throw wan::Error("it answers something else than was asked");
  std::vector<double> words(count);
  std::memcpy(words.data(), bytes.data.get(), bytes.size);
  return words;
}

// For some seconds as much as goes: what is on its way grows as long as it is acknowledged soon.
void send_bulk(wan::Path& path) {
  const auto begun = Clock::now();
  std::deque<wan::Request> flying;
  std::size_t window = kFirstWindow, sent = 0;
  auto round = begun;
  std::size_t of_round = 0;
  while (since(begun) < kSending && sent < kMost) {
    while (flying.size() * kChunk < window) {
      flying.push_back(path.start_send(kBulk, zeros()));
      sent += kChunk;
    }
    await(flying.front());
    flying.pop_front();
    of_round += kChunk;
    if (of_round < window) continue;
    if (since(round) < 1.5) window = std::min(2 * window, kLastWindow);
    of_round = 0;
    round = Clock::now();
  }
  path.start_send(kBulk, {});
  for (wan::Request& request : flying) await(request);
}

// Bytes a second of the second half, when the streams have found their pace.
double receive_bulk(wan::Path& path) {
  std::vector<Clock::time_point> times;
  for (;;) {
    wan::Request request = path.start_receive_any(kBulk, kChunk);
    await(request);
    if (request.size() == 0) break;
    if (times.size() * kChunk >= kMost + kLastWindow) throw wan::Error("it sends more than the measurement takes");
    times.push_back(request.done_at());
    request.take();
  }
  if (times.size() < 4) return 0;
  std::sort(times.begin(), times.end());
  const std::size_t middle = times.size() / 2;
  const double seconds = std::chrono::duration<double>(times.back() - times[middle]).count();
  return seconds > 0 ? static_cast<double>((times.size() - 1 - middle) * kChunk) / seconds : 0;
}

// The side that called asks, the other one answers, in the same order.
void measure_asking(wan::Path& path, LinkCheck& link) {
  for (int i = 0; i < kPings; ++i) {
    const double asked = wall_clock();
    const auto begun = Clock::now();
    put(path, {0});
    const double theirs = get(path, 1)[0], trip = since(begun);
    if (i > 0 && trip >= link.round_trip) continue;
    link.round_trip = trip;
    link.clock_difference = theirs - (asked + trip / 2);
  }
  put(path, {link.round_trip, -link.clock_difference});
  send_bulk(path);
  link.rate_out = get(path, 1)[0];
  link.rate_in = receive_bulk(path);
  put(path, {link.rate_in});
}

void measure_answering(wan::Path& path, LinkCheck& link) {
  for (int i = 0; i < kPings; ++i) {
    get(path, 1);
    put(path, {wall_clock()});
  }
  const auto found = get(path, 2);
  link.round_trip = found[0];
  link.clock_difference = found[1];
  link.rate_in = receive_bulk(path);
  put(path, {link.rate_in});
  send_bulk(path);
  link.rate_out = get(path, 1)[0];
}

LinkCheck check_link(StartedLink& started, const Hello& ours) {
  LinkCheck link;
  link.site = started.site;
  link.calls = started.calls;
  link.reachable = started.up;
  link.error = started.problem;
  if (!started.up) return link;
  link.version = started.theirs.version;
  link.differences = differences(ours, started.theirs);
  link.waits_to_run = started.theirs.purpose == Purpose::kRun;
  if (link.waits_to_run || started.theirs.protocol != ours.protocol) return link;
  try {
    if (started.calls)
      measure_answering(started.path, link);
    else
      measure_asking(started.path, link);
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
