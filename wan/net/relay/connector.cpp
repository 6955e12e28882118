#include "wan/net/relay/connector.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "wan/net/byte_codec.hpp"
#include "wan/net/error.hpp"
#include "wan/net/settings.hpp"

namespace maki::wan {
namespace {

// Seconds without an answer after which the next address is tried in parallel: longer than most round trips.
constexpr double kHeadStart = 0.4;
// Seconds between attempts once kAtOnce run, or all were tried. A system repeats its SYN after 1, 2, 4, ... s: an
// attempt that makes room has had one repetition, and if the network was down a new one gets through sooner.
constexpr double kAskAgain = 2;

}  // namespace

Connector::Connector(EventLoop& loop, std::vector<Address> addresses, const PathSettings& settings,
                     std::optional<RelayAdmission> admission, Done done, Failed failed)
    : loop_(loop), addresses_(std::move(addresses)), settings_(settings), admission_(std::move(admission)),
      done_(std::move(done)), failed_(std::move(failed)) {
  timer_ = loop_.after(0, [this] { start_next(); });  // later: the owner must have this object by then
}

Connector::~Connector() {
  loop_.cancel(timer_);
  while (!attempts_.empty()) end(attempts_.front());
}

void Connector::start_next() {
  timer_ = 0;
  if (!addresses_.empty()) {
    make_room();
    Attempt& attempt = attempts_.emplace_back(*this, addresses_[next_ % addresses_.size()]);
    const double patience = next_++ < addresses_.size() ? settings_.connect_timeout : time_left();
    try {
      attempt.socket = start_connect(attempt.address, settings_);
      loop_.watch(attempt.socket.descriptor(), false, true, attempt);
      attempt.timeout = loop_.after(patience, [this, &attempt] {
        fail(attempt, fmt::format("{}: no answer in {} s", attempt.address.text(), settings_.connect_timeout));
      });
    } catch (const Error& error) {
      add_reason(error.what());
      end(attempt);
    }
  }
  go_on();
}

// Ends the oldest attempt: its address is tried again while there is time.
void Connector::make_room() {
  if (attempts_.size() < kAtOnce) return;
  made_room_.push_back(attempts_.front().address.text());
  end(attempts_.front());
}

// The next step: another address, at once if no attempt is running, or the report that all have failed.
void Connector::go_on() {
  if (next_ < addresses_.size()) {
    const double wait = attempts_.empty() ? 0 : attempts_.size() < kAtOnce ? kHeadStart : kAskAgain;
    timer_ = loop_.after(wait, [this] { start_next(); });
  } else if (!attempts_.empty()) {
    if (time_left() > kAskAgain + 1) timer_ = loop_.after(kAskAgain, [this] { start_next(); });
  } else {
    for (const std::string& address : made_room_)
      if (reasons_.find(address + ":") == std::string::npos) add_reason(address + ": no answer");
    give_up(Failure::kAgain, reasons_.empty() ? "it has no address" : reasons_);
  }
}

void Connector::on_ready(Attempt& attempt) {
  if (!connected_) {
    const int error = connect_error(attempt.socket.descriptor());
    if (error != 0) return fail(attempt, attempt.address.text() + ": " + std::strerror(error));
    answered(attempt);
  }
  if (admission_ && !admitted(attempt)) return;
  loop_.cancel(timer_);
  loop_.forget(attempt.socket.descriptor());
  Socket socket = std::move(attempt.socket);
  const Address address = attempt.address;
  const Done done = std::move(done_);
  done(std::move(socket), address);
}

// The connection is taken, and all other attempts end.
void Connector::answered(Attempt& attempt) {
  connected_ = true;
  loop_.cancel(timer_);
  loop_.cancel(attempt.timeout);
  while (attempts_.size() > 1) end(&attempts_.front() == &attempt ? attempts_.back() : attempts_.front());
  if (!admission_) return;
  timer_ = loop_.after(settings_.handshake_timeout, [this, at = attempt.address.text()] {
    give_up(Failure::kAgain,
            fmt::format("the relay at {} did not finish its greeting in {} s", at, settings_.handshake_timeout));
  });
}

// False if the relay has not answered yet, or this object has ended.
bool Connector::admitted(Attempt& attempt) {
  const int descriptor = attempt.socket.descriptor();
  try {
    const IoStatus status = admission_->progress(descriptor);
    if (status == IoStatus::kDone) return true;
    if (status != IoStatus::kClosed)
      return loop_.change(descriptor, status == IoStatus::kWantRead, status == IoStatus::kWantWrite), false;
  } catch (const SecurityError& error) {
    return give_up(Failure::kSecurity, error.what()), false;
  } catch (const Error& error) {
    return give_up(admission_->try_again() ? Failure::kAgain : Failure::kRefused, error.what()), false;
  }
  give_up(Failure::kAgain, "the relay at " + attempt.address.text() + " closed the connection before its verdict");
  return false;
}

void Connector::fail(Attempt& attempt, const std::string& reason) {
  add_reason(reason);
  end(attempt);
  loop_.cancel(timer_);
  go_on();
}

void Connector::end(Attempt& attempt) {
  loop_.cancel(attempt.timeout);
  if (attempt.socket.open()) loop_.forget(attempt.socket.descriptor());
  attempts_.remove_if([&](const Attempt& one) { return &one == &attempt; });
}

void Connector::give_up(Failure failure, const std::string& reason) {
  const Failed failed = std::move(failed_);
  const std::string why = reason;
  loop_.cancel(timer_);
  while (!attempts_.empty()) end(attempts_.front());
  failed(failure, why);
}

double Connector::time_left() const { return settings_.connect_timeout - seconds_since(begun_); }

void Connector::add_reason(const std::string& reason) {
  if (reasons_.find(reason) == std::string::npos) reasons_ += (reasons_.empty() ? "" : "; ") + reason;
}

// ---- the control connection ----------------------------------------------------------------------------------------

namespace {

// A peer that has not read so many calls is considered lost.
constexpr std::size_t kMaxOutgoing = 1024 * kTokenBytes;

}  // namespace

std::string make_token() {
  std::array<std::byte, kTokenBytes / 2> bits;
  random_bytes(bits);
  return to_hex(bits);
}

std::array<std::byte, kTokenBytes> encode_control(const std::string& token) {
  return block<kTokenBytes>(std::as_bytes(std::span(token)));
}

std::string decode_control(std::span<const std::byte, kTokenBytes> bytes) {
  const std::string token(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (token == std::string(kTokenBytes, '\0')) return "";
  if (!is_hex(token, kTokenBytes)) throw ProtocolError("a relay's control connection carries what it cannot");
  return token;
}

ControlChannel::ControlChannel(EventLoop& loop, Socket socket, Called called, Lost lost)
    : loop_(loop), socket_(std::move(socket)), called_(std::move(called)), lost_(std::move(lost)) {
  loop_.watch(socket_.descriptor(), true, false, *this);
  beat_ = loop_.after(0, [this] { beat(); });
}

ControlChannel::~ControlChannel() {
  loop_.cancel(beat_);
  if (socket_.open()) loop_.forget(socket_.descriptor());
}

void ControlChannel::call(const std::string& token) {
  if (socket_.open()) queue(token);
}

double ControlChannel::silent() const { return seconds_since(heard_); }

void ControlChannel::beat() {
  if (silent() > kControlTimeout) return end(fmt::format("silent for {:.0f} seconds", kControlTimeout));
  beat_ = loop_.after(kControlBeat, [this] { beat(); });
  if (outgoing_.empty()) queue("");
}

void ControlChannel::queue(const std::string& token) {
  const auto bytes = encode_control(token);
  // Full: nobody reads. The next beat will detect the silence; the caller may still need this object now.
  if (outgoing_.size() < kMaxOutgoing) outgoing_.insert(outgoing_.end(), bytes.begin(), bytes.end());
  loop_.change(socket_.descriptor(), true, true);
}

void ControlChannel::on_ready(bool readable, bool writable) {
  if (readable && !receive()) return;
  if (writable) send();
}

void ControlChannel::send() {
  const IoResult sent = write_some(socket_.descriptor(), outgoing_);
  outgoing_.erase(outgoing_.begin(), outgoing_.begin() + static_cast<std::ptrdiff_t>(sent.bytes));
  if (sent.status == IoStatus::kWantWrite) return;
  if (sent.status == IoStatus::kClosed) return end(std::strerror(errno));
  loop_.change(socket_.descriptor(), true, false);
}

// False when this has ended.
bool ControlChannel::receive() {
  for (int frames = 0; frames < 64;) {  // then the others in this loop have their turn
    const IoResult result = read_some(socket_.descriptor(), std::span(incoming_).subspan(received_));
    if (result.status == IoStatus::kWantRead) return true;
    if (result.status == IoStatus::kClosed)
      return end(errno == 0 ? "closed by the other side" : std::strerror(errno)), false;
    received_ += result.bytes;
    if (received_ < kTokenBytes) continue;
    received_ = 0;
    ++frames;
    heard_ = EventLoop::Clock::now();
    try {
      const std::string token = decode_control(incoming_);
      if (!token.empty() && called_) called_(token);
    } catch (const ProtocolError& error) {
      return end(error.what()), false;
    }
  }
  return true;
}

void ControlChannel::end(const std::string& reason) {
  loop_.cancel(beat_);
  loop_.forget(socket_.descriptor());
  socket_ = Socket();
  const Lost lost = std::move(lost_);
  const std::string why = reason;
  lost(why);
}

// ---- registered at a relay -----------------------------------------------------------------------------------------

namespace {

using admission::Want;

// Connections being made at once, within 512 sockets, and calls that wait meanwhile.
constexpr std::size_t kMaxAnswers = 512 / Connector::kAtOnce, kMaxCalls = 512;
constexpr double kFirstWait = 0.1, kMaxWait = 5;         // seconds between attempts to register
constexpr auto kFirstAttempt = std::chrono::seconds(5);  // for which start() waits

}  // namespace

std::unique_ptr<HiddenListener> HiddenListener::start(EventLoop& loop, const RelayRoute& route,
                                                      const PathSettings& settings, Arrived arrived) {
  std::unique_ptr<HiddenListener> hidden(new HiddenListener(loop, route, settings, std::move(arrived)));
  std::future<void> attempt = hidden->first_.get_future();
  try {
    loop.call([&hidden] { hidden->enroll(); });
    // Within the loop waiting would block the work waited for.
    if (!loop.in_loop() && attempt.wait_for(kFirstAttempt) == std::future_status::ready) attempt.get();
  } catch (...) {
    loop.call([&hidden] { hidden.reset(); });
    throw;
  }
  return hidden;
}

HiddenListener::HiddenListener(EventLoop& loop, const RelayRoute& route, const PathSettings& settings, Arrived arrived)
    : loop_(loop), name_(route.target), relay_(route.relay), settings_(settings), arrived_(std::move(arrived)),
      key_(read_key(route.key_file)), addresses_(route.relay), wait_(kFirstWait) {
  RelayAdmission(key_, Want::kListen, name_);  // throws for an invalid name
}

void HiddenListener::enroll() {
  again_ = 0;
  dial_ = std::make_unique<Connector>(
      loop_, addresses_.now(), settings_, RelayAdmission(key_, Want::kListen, name_),
      [this](Socket socket, const Address&) { enrolled(std::move(socket)); },
      [this](Connector::Failure failure, const std::string& reason) { not_enrolled(failure, reason); });
}

void HiddenListener::enrolled(Socket socket) {
  dial_.reset();
  wait_ = kFirstWait;
  if (problem_logged_)
    log(LogLevel::kInfo, fmt::format("registered again as '{}' at the relay {}", name_, relay_.text()));
  problem_logged_ = false;
  control_ = std::make_unique<ControlChannel>(
      loop_, std::move(socket), [this](const std::string& token) { called(token); },
      [this](const std::string& reason) { lost(reason); });
  settle(nullptr);
}

void HiddenListener::not_enrolled(Connector::Failure failure, const std::string& reason) {
  dial_.reset();
  log_problem(fmt::format("cannot register as '{}' at the relay {} ({}): trying on", name_, relay_.text(), reason));
  settle(failure == Connector::Failure::kAgain      ? nullptr
         : failure == Connector::Failure::kSecurity ? std::make_exception_ptr(SecurityError(reason))
                                                    : std::make_exception_ptr(Error(reason)));
  again();
}

void HiddenListener::lost(const std::string& reason) {
  control_.reset();
  calls_.clear();  // nobody knows their tokens any more
  log_problem(fmt::format("the relay {} is gone, where '{}' was registered ({}): trying to come back", relay_.text(),
                          name_, reason));
  again();
}

// One line for each period of trouble.
void HiddenListener::log_problem(const std::string& text) {
  if (!problem_logged_) log(LogLevel::kWarning, text);
  problem_logged_ = true;
}

// Random delays: the listeners that a relay's end has cut off do not return all at once.
void HiddenListener::again() {
  addresses_.look_up_again();
  again_ = loop_.after(wait_ * std::uniform_real_distribution<>(0.5, 1.0)(random_), [this] { enroll(); });
  wait_ = std::min(2 * wait_, kMaxWait);
}

void HiddenListener::settle(const std::exception_ptr& refusal) {
  if (!std::exchange(settled_, true)) refusal ? first_.set_exception(refusal) : first_.set_value();
}

void HiddenListener::called(const std::string& token) {
  if (calls_.size() >= kMaxCalls)
    return log_once(LogLevel::kWarning,
                    fmt::format("the relay {} calls more often than '{}' can answer", relay_.text(), name_));
  calls_.push_back(token);
  answer_waiting();
}

void HiddenListener::answer_waiting() {
  while (!calls_.empty() && answers_.size() < kMaxAnswers) {
    answer(calls_.front());
    calls_.pop_front();
  }
}

void HiddenListener::answer(const std::string& token) {
  const auto place = answers_.emplace(answers_.end());
  *place = std::make_unique<Connector>(
      loop_, addresses_.now(), settings_, RelayAdmission(key_, Want::kAnswer, token),
      [this, place](Socket socket, const Address& relay) {
        const Address from = relay;
        answers_.erase(place);
        answer_waiting();
        arrived_(std::move(socket), from);
      },
      [this, place](Connector::Failure, const std::string& reason) {
        answers_.erase(place);
        answer_waiting();
        log(LogLevel::kWarning, fmt::format("cannot answer a call through the relay {} ({})", relay_.text(), reason));
      });
}

}  // namespace maki::wan
