#include "wan/net/mpw/meeting.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <iterator>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

#include "wan/net/byte_codec.hpp"
#include "wan/net/error.hpp"
#include "wan/net/secure/key.hpp"
#include "wan/net/settings.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan::mpw {

// ---- greeting ------------------------------------------------------------------------------------------------------

namespace {

constexpr std::uint32_t kMagic = 0x3157504d;  // "MPW1"

std::string text(const std::vector<int>& ports) {
  const bool run = ports.back() - ports.front() + 1 == static_cast<int>(ports.size());
  if (run && ports.size() > 2) return fmt::format("{} to {}", ports.front(), ports.back());
  return fmt::format("{}", fmt::join(ports, ", "));
}

}  // namespace

std::vector<std::byte> encode(const Greeting& greeting) {
  ByteWriter out;
  out.put(kMagic);
  out.put(static_cast<std::uint32_t>(greeting.ports.size()));
  out.put(greeting.ticket);
  for (const int port : greeting.ports) out.put(static_cast<std::uint32_t>(port));
  return out.take();
}

Greeting decode_greeting(std::span<const std::byte> bytes) {
  ByteReader in(bytes, "The peer's greeting", "The peer's greeting is broken");
  if (bytes.size() < 16 || in.number<std::uint32_t>() != kMagic)
    throw ProtocolError("The peer is no program with MPWide's calls", "its first message is something else");
  const auto count = in.number<std::uint32_t>();
  if (count < 1 || count > kMaxChannels || bytes.size() != 16 + std::size_t{4} * count)
    in.fail(fmt::format("{} channels in {} bytes", count, bytes.size()));
  Greeting greeting{in.number<std::uint64_t>(), {}};
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto port = in.number<std::uint32_t>();
    if (port < 1 || port > 65535 || (i > 0 && static_cast<int>(port) < greeting.ports.back()))
      in.fail(fmt::format("port {} at place {}", port, i));
    greeting.ports.push_back(static_cast<int>(port));
  }
  return greeting;
}

std::vector<int> partners(const std::vector<int>& mine, const std::vector<int>& theirs) {
  std::vector<int> common;
  std::set_intersection(mine.begin(), mine.end(), theirs.begin(), theirs.end(), std::back_inserter(common));
  if (!common.empty()) return common;
  if (mine.size() == theirs.size()) return mine;
  throw Error("The two sides' channels do not match", fmt::format("ports {} here, {} there", text(mine), text(theirs)),
              "give both sides the same ports, or at least as many");
}

// ---- choice of the path --------------------------------------------------------------------------------------------

namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t draw_ticket() {
  std::uint64_t ticket = 0;
  random_bytes(std::as_writable_bytes(std::span(&ticket, 1)));
  return ticket;
}

// The name of a caller in messages; distinguishes meetings.
std::string caller_name(std::uint64_t ticket) {
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  return fmt::format("{:.40}-{:016x}", host, ticket);
}

// A path to the other side, possibly one of two.
struct Candidate {
  Path path;
  bool called = false;  // we called
  Request greeting, verdict;
  bool greeted = false;
  Greeting theirs;
};

class Meeting {
 public:
  explicit Meeting(const MeetingPlan& plan) : plan_(plan), mine_{draw_ticket(), plan.ports} {}
  ~Meeting();
  Met run();

 private:
  void prepare();
  void open_door();
  void start_calling(const std::string& host);
  void collect();
  void add(Path path, bool called);
  bool settled(Candidate& candidate);
  void drop(std::list<Candidate>::iterator candidate);
  Met take(Candidate& candidate);
  void give_up() const;

  const MeetingPlan& plan_;
  const Greeting mine_;
  Expected expected_;
  std::shared_ptr<SharedListener> shared_listener_;
  std::string why_not_;  // why there is none
  std::optional<PathCaller> caller_;
  std::string last_failure_;  // of an attempt to call
  std::list<Candidate> candidates_;
  Clock::time_point begun_ = Clock::now();
  bool wait_reported_ = false;
};

struct LeftAttempts {
  std::mutex mutex;
  std::list<std::future<Path>> attempts;
};

// Never destroyed: end_attempts() may be called at the very end.
LeftAttempts& left_attempts() {
  static LeftAttempts& all = *new LeftAttempts;
  return all;
}

// Does not wait: an attempt under way ends by itself, before end_attempts() returns.
Meeting::~Meeting() {
  if (shared_listener_) shared_listener_->forget(expected_);
  if (!caller_) return;
  const std::lock_guard lock(left_attempts().mutex);
  left_attempts().attempts.push_back(caller_->leave());
}

// A side that both calls and listens may be called meanwhile.
void Meeting::start_calling(const std::string& host) {
  const PathSettings& settings = plan_.environment.settings;
  const bool once = plan_.manner == Manner::kCall;
  const double attempt = once ? settings.connect_timeout : std::min(5.0, settings.connect_timeout);
  const Endpoint peer{host, static_cast<std::uint16_t>(plan_.ports.front())};
  const auto call = [=, security = plan_.environment.security, name = expected_.caller](double within) {
    return Path::connect(peer, security, settings, {.name = name, .within = within});
  };
  caller_.emplace(call, attempt, attempt, [this, once](const PathError& error, bool) {
    last_failure_ = error.what();
    return !once;
  });
}

void Meeting::open_door() {
  try {
    shared_listener_ = SharedListener::open(plan_.ports.front(), plan_.environment);
    shared_listener_->expect(expected_);
  } catch (const SecurityError&) {
    throw;
  } catch (const Error& error) {
    why_not_ = error.what();
  }
}

void Meeting::prepare() {
  expected_.caller = caller_name(mine_.ticket);
  if (plan_.manner != Manner::kWait) {
    for (const Address& address : resolve({plan_.host, static_cast<std::uint16_t>(plan_.ports.front())}))
      expected_.addresses.push_back(address.host());
  }
  if (plan_.manner != Manner::kCall) open_door();
  if (plan_.manner != Manner::kWait) {
    start_calling(plan_.host);
  } else if (!shared_listener_) {  // another process of this host has the port: perhaps the peer
    log(LogLevel::kInfo, fmt::format("port {} is taken on this host: calling whoever has it", plan_.ports.front()));
    start_calling("localhost");
  }
}

void Meeting::add(Path path, bool called) {
  try {
    const auto greeting = encode(mine_);
    Request out = path.start_send(kGreetingTag, greeting);
    Request in = path.start_receive_any(kGreetingTag, kMaxGreeting);
    out.wait();
    candidates_.push_back({std::move(path), called, in, {}, false, {}});
  } catch (const PathError&) {
    if (called && caller_) caller_->again();
  }
}

void Meeting::collect() {
  while (shared_listener_) {
    auto accepted = shared_listener_->take(expected_);
    if (!accepted) break;
    add(std::move(accepted->path), false);
  }
  if (!caller_) return;
  try {
    if (auto path = caller_->take()) add(std::move(*path), true);
  } catch (const Error&) {
    if (candidates_.empty()) throw;  // else the other side has called, which is as good
  }
}

void Meeting::drop(std::list<Candidate>::iterator candidate) {
  if (candidate->called && caller_) caller_->again();
  candidates_.erase(candidate);
}

// True if it is the chosen one.
bool Meeting::settled(Candidate& candidate) {
  if (!candidate.greeted) {
    if (!candidate.greeting.test()) return false;
    candidate.theirs = decode_greeting(candidate.greeting.take().view());
    candidate.greeted = true;
    partners(mine_.ports, candidate.theirs.ports);
  }
  const std::byte taken{1};
  if (mine_.ticket < candidate.theirs.ticket) {
    candidate.path.send(kGreetingTag, std::span(&taken, 1));
    return true;
  }
  if (!candidate.verdict.valid()) candidate.verdict = candidate.path.start_receive_any(kGreetingTag, 1);
  return candidate.verdict.test();
}

Met Meeting::take(Candidate& candidate) {
  Met met{std::move(candidate.path), partners(mine_.ports, candidate.theirs.ports),
          candidate.called ? nullptr : shared_listener_};
  met.path.change(plan_.environment.settings);
  return met;
}

void Meeting::give_up() const {
  const int port = plan_.ports.front();
  const std::string waited = fmt::format("within {:g} s", plan_.environment.wait);
  const std::string longer = "'wait' in MAKI_WAN_SETTINGS makes it longer";
  if (!candidates_.empty())
    throw Error(fmt::format("The peer on port {} did not answer {}", port, waited),
                "a path stands, but the program there does not take it",
                "see that it makes the same channels; " + longer);
  if (plan_.manner == Manner::kWait)
    throw Error(
        fmt::format("Nobody came to port {} {}", port, waited),
        fmt::format("this side only listens, its host being \"{}\"", plan_.host),
        "if the other side only listens too, let one of them name the other's address; else see that it runs and "
        "that the port is open to it; " +
            longer);
  throw Error(fmt::format("No path to {} port {} came about {}", plan_.host, port, waited),
              fmt::format("{}; {}", last_failure_.empty() ? "it was called without an answer" : last_failure_,
                          shared_listener_ ? "nobody came to that port here" : why_not_),
              "see that the other side runs, names the same port, and that one of the two can be reached; " + longer);
}

Met Meeting::run() {
  prepare();
  while (true) {
    collect();
    for (auto next = candidates_.begin(); next != candidates_.end();) {
      const auto at = next++;
      try {
        if (settled(*at)) return take(*at);
      } catch (const PathError&) {  // closed in favour of another one, or lost
        drop(at);
      } catch (const ProtocolError& error) {
        log(LogLevel::kInfo, error.what());
        drop(at);
      }
    }
    const double waited = seconds_since(begun_);
    if (waited > plan_.environment.wait) give_up();
    if (waited > 10 && !wait_reported_ && shared_listener_ && candidates_.empty()) {
      log(LogLevel::kInfo, fmt::format("waiting for a peer to come to port {}", plan_.ports.front()));
      wait_reported_ = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(waited < 1 ? 1 : 5));
  }
}

}  // namespace

Met meet(const MeetingPlan& plan) { return Meeting(plan).run(); }

void end_attempts() {
  std::list<std::future<Path>> attempts;  // each is joined on destruction
  const std::lock_guard lock(left_attempts().mutex);
  attempts.swap(left_attempts().attempts);
}

}  // namespace maki::wan::mpw
