#include "wan/net/mpw/dialer.hpp"

#include <algorithm>
#include <chrono>
#include <list>
#include <utility>

namespace maki::wan::mpw {
namespace {

constexpr std::chrono::milliseconds kFirstPause{50}, kLongestPause{2000};  // after a path that was no good

struct Left {
  std::mutex mutex;
  std::list<std::unique_ptr<Dialer>> dialers;
};

// Never destroyed: who ends last asks end_all().
Left& left() {
  static Left& all = *new Left;
  return all;
}

}  // namespace

Dialer::Dialer(DialerPlan plan) : plan_(std::move(plan)), thread_([this] { run(); }) {}

Dialer::~Dialer() {
  stop();
  thread_.join();
}

void Dialer::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

void Dialer::leave(std::unique_ptr<Dialer> dialer) {
  if (!dialer) return;
  dialer->stop();
  const std::lock_guard lock(left().mutex);
  left().dialers.push_back(std::move(dialer));
}

void Dialer::end_all() {
  std::list<std::unique_ptr<Dialer>> dialers;
  const std::lock_guard lock(left().mutex);
  dialers.swap(left().dialers);
}

std::optional<Path> Dialer::take() {
  const std::lock_guard lock(mutex_);
  if (hopeless_) std::rethrow_exception(hopeless_);
  return std::exchange(path_, std::nullopt);
}

void Dialer::again() {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = again_ = true;
  }
  changed_.notify_all();
}

std::string Dialer::last_failure() const {
  const std::lock_guard lock(mutex_);
  return last_failure_;
}

void Dialer::run() {
  auto pause = kFirstPause;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || wanted_; });
    if (again_) {
      changed_.wait_for(lock, pause, [&] { return stopping_; });
      pause = std::min(2 * pause, kLongestPause);
    }
    if (stopping_) return;
    again_ = false;
    lock.unlock();
    std::optional<Path> path;
    std::exception_ptr error;
    std::string reason;
    bool may_come = false, closed = false;
    const auto begun = std::chrono::steady_clock::now();
    try {
      path =
          Path::connect(plan_.peer, plan_.security, plan_.settings, plan_.name, {}, Context::shared(), plan_.attempt);
    } catch (const PathError& failure) {
      // Before its time is over an attempt is ended by a refusal, or by a peer that has just closed its port.
      closed = failure.seconds_down() == 0;
      may_come =
          closed || std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count() >= plan_.attempt;
      error = std::current_exception();
      reason = failure.what();
    } catch (const std::exception& failure) {
      error = std::current_exception();
      reason = failure.what();
    }
    lock.lock();
    last_failure_ = reason;
    wanted_ = !path && may_come && !plan_.once;
    again_ = wanted_ && closed;
    if (!path && !wanted_) hopeless_ = error;
    path_ = std::move(path);
  }
}

}  // namespace maki::wan::mpw
