#include "wan/net/socket/event_loop.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wan/net/error.hpp"
#include "wan/net/log.hpp"

namespace maki::wan {
namespace {

// Signals of the process belong to the program's own threads; and a peer that went away must not end the process by
// SIGPIPE (OpenSSL writes with write(2)). Faults and the profiler's clock stay.
sigset_t signals_to_block() {
  sigset_t set;
  sigfillset(&set);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF}) sigdelset(&set, signal);
  return set;
}

Error system_error(const std::string& what) { return Error(what, std::strerror(errno)); }

std::uint32_t mask(bool read, bool write) { return (read ? EPOLLIN : 0u) | (write ? EPOLLOUT : 0u); }

}  // namespace

class EventLoop::Core {
 public:
  explicit Core(const std::string& name);
  ~Core();

  void post(std::function<void()> work);
  bool in_loop() const { return std::this_thread::get_id() == thread_.get_id(); }

  void watch(int descriptor, std::uint32_t events, Pollable& who);
  void change(int descriptor, std::uint32_t events);
  void forget(int descriptor);
  Timer at(Clock::time_point when, std::function<void()> work);
  void cancel(Timer timer);

 private:
  // The age tells a descriptor from an earlier one of the same number within a batch of events.
  struct Watched {
    Pollable* who;
    std::uint32_t age;
    std::uint32_t events;
  };

  void run();
  int wait();
  void deliver(const epoll_event& event);
  bool run_posted();
  void run_timers();
  void control(int operation, int descriptor, const Watched& watched);

  int epoll_ = -1, wake_ = -1;
  bool precise_wait_ = true;  // the kernel has epoll_pwait2
  std::unordered_map<int, Watched> watched_;
  std::uint32_t next_age_ = 1;
  std::array<epoll_event, 128> events_{};

  std::map<std::pair<Clock::time_point, Timer>, std::function<void()>> timers_;
  std::unordered_map<Timer, Clock::time_point> timer_times_;
  Timer next_timer_ = 1;

  std::mutex mutex_;  // of what follows
  std::vector<std::function<void()>> posted_;
  bool stopping_ = false;

  std::thread thread_;
};

EventLoop::Core::Core(const std::string& name) {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = 0;
  if (epoll_ < 0 || wake_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) != 0) {
    const Error error = system_error("cannot make an event loop");
    if (epoll_ >= 0) close(epoll_);
    if (wake_ >= 0) close(wake_);
    throw error;
  }
  sigset_t before;
  const sigset_t blocked = signals_to_block();
  pthread_sigmask(SIG_BLOCK, &blocked, &before);  // the new thread inherits it
  {
    std::lock_guard lock(mutex_);  // thread_ is set before the loop looks at it
    thread_ = std::thread([this] { run(); });
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

EventLoop::Core::~Core() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof(one));
  thread_.join();
  // What a timer holds may cancel others or forget sockets as it goes: with everything here still in order.
  const auto timers = std::exchange(timers_, {});
  timer_times_.clear();
  close(epoll_);
  close(wake_);
}

void EventLoop::Core::post(std::function<void()> work) {
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    wake = posted_.empty();
    posted_.push_back(std::move(work));
  }
  if (!wake || in_loop()) return;  // the loop looks before it sleeps
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof(one));
}

void EventLoop::Core::control(int operation, int descriptor, const Watched& watched) {
  epoll_event event{};
  event.events = watched.events;
  event.data.u64 = (std::uint64_t{watched.age} << 32) | static_cast<std::uint32_t>(descriptor);
  if (epoll_ctl(epoll_, operation, descriptor, &event) != 0) throw system_error("cannot watch a socket");
}

void EventLoop::Core::watch(int descriptor, std::uint32_t events, Pollable& who) {
  const Watched watched{&who, next_age_, events};
  control(EPOLL_CTL_ADD, descriptor, watched);
  next_age_ = std::max(next_age_ + 1, 1u);  // 0 is the wake descriptor's
  watched_[descriptor] = watched;
}

void EventLoop::Core::change(int descriptor, std::uint32_t events) {
  const auto found = watched_.find(descriptor);
  if (found == watched_.end()) throw Error("internal: change() of a socket that is not watched");
  if (found->second.events == events) return;
  found->second.events = events;
  control(EPOLL_CTL_MOD, descriptor, found->second);
}

void EventLoop::Core::forget(int descriptor) {
  if (watched_.erase(descriptor) > 0) epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
}

EventLoop::Timer EventLoop::Core::at(Clock::time_point when, std::function<void()> work) {
  const Timer timer = next_timer_++;
  timers_.emplace(std::pair{when, timer}, std::move(work));
  timer_times_.emplace(timer, when);
  return timer;
}

void EventLoop::Core::cancel(Timer timer) {
  const auto found = timer_times_.find(timer);
  if (found == timer_times_.end()) return;
  timers_.erase({found->second, timer});
  timer_times_.erase(found);
}

void EventLoop::Core::run() {
  { std::lock_guard lock(mutex_); }
  for (;;) {
    const int count = wait();
    for (int i = 0; i < count; ++i) deliver(events_[i]);
    run_timers();
    if (!run_posted()) return;
  }
}

// Sleeps until something happens, a timer is due, or work is there.
int EventLoop::Core::wait() {
  using namespace std::chrono;
  auto left = nanoseconds::max();
  if (!timers_.empty()) left = std::max(nanoseconds(timers_.begin()->first.first - Clock::now()), nanoseconds(0));
  {
    std::lock_guard lock(mutex_);
    if (!posted_.empty() || stopping_) left = nanoseconds(0);
  }
  left = std::min(left, nanoseconds(hours(1)));
  int count = -1;
  if (precise_wait_) {  // pacing and small round trips need finer steps than milliseconds
    const struct timespec time = {static_cast<time_t>(left.count() / 1000000000),
                                  static_cast<long>(left.count() % 1000000000)};
    count = static_cast<int>(
        syscall(SYS_epoll_pwait2, epoll_, events_.data(), static_cast<int>(events_.size()), &time, nullptr, 0));
    if (count < 0 && errno != EINTR) precise_wait_ = false;
  }
  if (!precise_wait_) {
    const auto milliseconds = (left.count() + 999999) / 1000000;
    count = epoll_wait(epoll_, events_.data(), static_cast<int>(events_.size()), static_cast<int>(milliseconds));
  }
  return std::max(count, 0);
}

void EventLoop::Core::deliver(const epoll_event& event) {
  if (event.data.u64 == 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = read(wake_, &count, sizeof(count));
    return;
  }
  const int descriptor = static_cast<int>(event.data.u64 & 0xffffffffu);
  const auto found = watched_.find(descriptor);
  if (found == watched_.end() || found->second.age != event.data.u64 >> 32) return;
  const bool readable = event.events & (EPOLLIN | EPOLLHUP | EPOLLERR);
  try {
    found->second.who->on_ready(readable, event.events & EPOLLOUT);
  } catch (const std::exception& error) {
    log(LogLevel::kError, std::string("internal: unexpected while serving a socket: ") + error.what());
    forget(descriptor);  // or it would be reported again at once
  }
}

void EventLoop::Core::run_timers() {
  if (timers_.empty()) return;
  const auto now = Clock::now();  // what is set meanwhile for now waits for the next turn
  const Timer newest = next_timer_;
  for (auto first = timers_.begin(); first != timers_.end() && first->first.first <= now;) {
    if (first->first.second >= newest) {
      ++first;
      continue;
    }
    const auto work = std::move(first->second);
    timer_times_.erase(first->first.second);
    timers_.erase(first);
    try {
      work();
    } catch (const std::exception& error) {
      log(LogLevel::kError, std::string("internal: unexpected in a timer: ") + error.what());
    }
    first = timers_.begin();  // the work may have changed any of them
  }
}

// False when the loop is to end, and all that was posted has run.
bool EventLoop::Core::run_posted() {
  std::vector<std::function<void()>> work;
  bool stopping = false;
  {
    std::lock_guard lock(mutex_);
    work.swap(posted_);
    stopping = stopping_;
  }
  for (auto& one : work) {
    try {
      one();
    } catch (const std::exception& error) {
      log(LogLevel::kError, std::string("internal: unexpected in the event loop: ") + error.what());
    }
    one = nullptr;  // what it holds goes before the next one runs
  }
  return !(stopping && work.empty());
}

EventLoop::EventLoop(const std::string& thread_name) : core_(std::make_unique<Core>(thread_name)) {}
EventLoop::~EventLoop() = default;

void EventLoop::post(std::function<void()> work) { core_->post(std::move(work)); }
bool EventLoop::in_loop() const { return core_->in_loop(); }

void EventLoop::call(const std::function<void()>& work) {
  if (in_loop()) return work();
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::exception_ptr error;
  post([&] {
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    std::lock_guard lock(mutex);  // notified under it: `changed` ends as soon as the caller sees `done`
    done = true;
    changed.notify_one();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return done; });
  if (error) std::rethrow_exception(error);
}

void EventLoop::watch(int descriptor, bool read, bool write, Pollable& who) {
  core_->watch(descriptor, mask(read, write), who);
}
void EventLoop::change(int descriptor, bool read, bool write) { core_->change(descriptor, mask(read, write)); }
void EventLoop::forget(int descriptor) { core_->forget(descriptor); }

EventLoop::Timer EventLoop::at(Clock::time_point when, std::function<void()> work) {
  return core_->at(when, std::move(work));
}

EventLoop::Timer EventLoop::after(double seconds, std::function<void()> work) {
  // A bound keeps the sum within the clock's range.
  const std::chrono::duration<double> wait(std::clamp(std::isnan(seconds) ? 0.0 : seconds, 0.0, 1e8));
  return at(Clock::now() + std::chrono::duration_cast<Clock::duration>(wait), std::move(work));
}

void EventLoop::cancel(Timer timer) { core_->cancel(timer); }

}  // namespace maki::wan
