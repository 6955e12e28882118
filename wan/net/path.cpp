#include "wan/net/path.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <thread>

#include "wan/net/path/path_core.hpp"
#include "wan/net/path/wire.hpp"
#include "wan/net/socket/event_loop.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan {

namespace {

constexpr double kCloseSeconds = 5;

Tag checked(Tag tag) {
  if (tag > kMaxTag) throw Error(fmt::format("Tag {} is reserved", tag), "tags end at 2^62 - 1", "use a lower one");
  return tag;
}

// Options that this kernel refuses are reported at once: waiting for the peer would not help.
void try_options(const Address& address, const PathSettings& settings) {
  const Socket probe(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (probe.open()) apply_options(probe.descriptor(), settings);
}

}  // namespace

Path::~Path() {
  if (core_) core_->close(kCloseSeconds);
}

Path& Path::operator=(Path&& other) noexcept {
  if (core_ && core_ != other.core_) core_->close(kCloseSeconds);
  core_ = std::move(other.core_);
  return *this;
}

Path Path::connect(const Endpoint& peer, const Security& security, const PathSettings& settings,
                   const CallOptions& options, Context& context) {
  settings.check();
  if (const std::string fault = fault_of_name(options.name); !fault.empty())
    throw Error("cannot call " + peer.text() + " by this name", fault, "give a short name of printable characters");
  const RelayRoute& relay = options.relay;
  DialPlan plan;
  plan.addresses = HostAddresses(relay.used() ? relay.relay : peer);
  try_options(plan.addresses.now().front(), settings);
  plan.host = relay.used() ? relay.target : peer.host;
  plan.settings = settings;
  plan.security = SecurityContext::make(security);
  plan.relay = relay;
  plan.hello.name = options.name;
  const std::string text =
      relay.used() ? fmt::format("{} by the relay {}", relay.target, relay.relay.text()) : peer.text();
  auto core = std::make_shared<PathCore>(context.next_loop(), settings, Side::kConnecting, text);
  core->connect(plan, options.within);
  return Path(std::move(core));
}

Request Path::start_send(Tag tag, std::span<const std::byte> message) { return core_->send(checked(tag), message); }
Request Path::start_send(Tag tag, Bytes message) {
  const auto view = message.view();
  return core_->send(checked(tag), view, std::move(message.data));
}

Request Path::start_receive(Tag tag, std::span<std::byte> buffer) {
  return core_->receive(checked(tag), {.buffer = buffer});
}

Request Path::start_receive_any(Tag tag, std::size_t limit) {
  return core_->receive(checked(tag), {.limit = limit, .any_size = true});
}

void Path::send(Tag tag, std::span<const std::byte> message) { start_send(tag, message).wait(); }

std::size_t Path::receive(Tag tag, std::span<std::byte> buffer) {
  Request request = start_receive(tag, buffer);
  request.wait();
  return request.size();
}

Bytes Path::receive_any(Tag tag, std::size_t limit) {
  Request request = start_receive_any(tag, limit);
  request.wait();
  return request.take();
}

void Path::change(const PathSettings& settings) { core_->change(settings); }
PathSettings Path::settings() const { return core_->settings(); }
PathStatus Path::status() const { return core_->status(); }
void Path::drop_stream(int number) { core_->drop_stream(number); }

bool Path::close(double seconds) {
  if (!core_) return true;
  return core_->close(seconds);  // calls of other threads that hold the path throw from now on
}

// ---- calling until somebody answers --------------------------------------------------------------------------------

PathCaller::PathCaller(Call call, double first, double longest, GoesOn goes_on)
    : call_(std::move(call)), goes_on_(std::move(goes_on)), within_(first), longest_(longest) {
  begin();
}

void PathCaller::begin() {
  begun_ = WallClock::now();
  attempt_ = std::async(std::launch::async, call_, within_);
}

std::optional<Path> PathCaller::take() {
  if (hopeless_) std::rethrow_exception(hopeless_);
  if (!attempt_.valid() && wanted_ && WallClock::now() >= next_) begin();
  if (!attempt_.valid() || attempt_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return {};
  wanted_ = false;
  try {
    return attempt_.get();
  } catch (const PathError& error) {
    const bool early = seconds_since(begun_) < within_;
    if (!error.refused() && goes_on_(error, early)) {
      wanted_ = true;
      within_ = std::min(1.4 * within_, longest_);
      if (early) again();  // its peer has closed its port, or the path
      return {};
    }
    hopeless_ = std::current_exception();
  } catch (...) {
    hopeless_ = std::current_exception();
  }
  std::rethrow_exception(hopeless_);
}

void PathCaller::again() {
  constexpr std::chrono::milliseconds kLongestPause{2000};
  wanted_ = true;
  next_ = WallClock::now() + pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
}

// ---- I/O threads ---------------------------------------------------------------------------------------------------

Context::Context(int threads) {
  if (threads < 1 || threads > 256) throw Error("a context of " + std::to_string(threads) + " I/O threads", "1 to 256");
  loops_.resize(static_cast<std::size_t>(threads));
}

Context::~Context() = default;

EventLoop& Context::next_loop() {
  const std::lock_guard lock(mutex_);
  const std::size_t turn = next_++ % loops_.size();
  if (!loops_[turn]) loops_[turn] = std::make_unique<EventLoop>("maki-wan-" + std::to_string(turn));
  return *loops_[turn];
}

EventLoop& Context::handshakes() {
  const std::lock_guard lock(mutex_);
  if (!handshakes_) handshakes_ = std::make_unique<EventLoop>("maki-handshakes");
  return *handshakes_;
}

// Never destroyed, since static objects may close their paths later. So its threads may still be in OpenSSL when the
// process ends, and OpenSSL must not clean up then.
Context& Context::shared() {
  static Context* const shared = [] {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
    return new Context(static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 8u)));
  }();
  return *shared;
}

// ---- requests ------------------------------------------------------------------------------------------------------

void Operation::end(std::size_t size, std::exception_ptr error, Bytes bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (done_) return;
    done_ = true;
    size_ = size;
    error_ = std::move(error);
    bytes_ = std::move(bytes);
    done_at_ = Clock::now();
  }
  changed_.notify_all();
}

bool Operation::wait(std::optional<double> seconds) const {
  std::unique_lock lock(mutex_);
  const auto is_done = [this] { return done_; };
  if (!seconds)
    changed_.wait(lock, is_done);
  else if (*seconds > 0)
    changed_.wait_for(lock, std::chrono::duration<double>(*seconds), is_done);
  if (error_) std::rethrow_exception(error_);
  return done_;
}

std::size_t Operation::size() const {
  const std::lock_guard lock(mutex_);
  return size_;
}

Bytes Operation::take() {
  const std::lock_guard lock(mutex_);
  return std::move(bytes_);
}

Operation::Clock::time_point Operation::done_at() const {
  const std::lock_guard lock(mutex_);
  return done_at_;
}

bool Request::test() { return wait_for(0); }
void Request::wait() {
  if (operation_) operation_->wait({});
}
bool Request::wait_for(double seconds) { return operation_ == nullptr || operation_->wait(seconds); }
std::size_t Request::size() const { return operation_ ? operation_->size() : 0; }
Bytes Request::take() { return operation_ ? operation_->take() : Bytes{}; }
std::chrono::steady_clock::time_point Request::done_at() const {
  return operation_ ? operation_->done_at() : std::chrono::steady_clock::time_point{};
}

}  // namespace maki::wan
