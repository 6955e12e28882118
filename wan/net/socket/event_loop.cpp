#include "wan/net/socket/event_loop.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <exception>
#include <future>
#include <memory>

#include "wan/net/error.hpp"

namespace maki::wan {
namespace {

// Signals of the process are left to the program's own threads, and a closed peer must not end the process by SIGPIPE
// (OpenSSL uses write(2)). Faults and the profiler's clock stay unblocked.
sigset_t signals_to_block() {
  sigset_t set;
  sigfillset(&set);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF}) sigdelset(&set, signal);
  return set;
}

Error system_error(const std::string& what) { return Error(what, std::strerror(errno)); }

std::uint32_t mask(bool read, bool write) { return (read ? EPOLLIN : 0u) | (write ? EPOLLOUT : 0u); }

// Exceptions of a callback have no receiver.
template <class Work>
bool survives(const char* where, Work work) {
  try {
    work();
    return true;
  } catch (const std::exception& error) {
    log(LogLevel::kError, fmt::format("internal: unexpected {}: {}", where, error.what()));
    return false;
  }
}

}  // namespace

EventLoop::EventLoop(const std::string& thread_name)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
  if (!epoll_.open() || !wake_.open() || epoll_ctl(epoll_.descriptor(), EPOLL_CTL_ADD, wake_.descriptor(), &event) != 0)
    throw system_error("cannot make an event loop");
  sigset_t before;
  const sigset_t blocked = signals_to_block();
  pthread_sigmask(SIG_BLOCK, &blocked, &before);  // the new thread inherits it
  try {
    std::lock_guard lock(mutex_);  // thread_ is set before the loop reads it
    thread_ = std::thread([this] { run(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), thread_name.substr(0, 15).c_str());
}

EventLoop::~EventLoop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
  // Destroying a timer may cancel others or forget sockets, so all members must still be valid.
  const auto timers = std::exchange(timers_, {});
  timer_times_.clear();
}

void EventLoop::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_.descriptor(), &one, sizeof(one));
}

void EventLoop::post(std::function<void()> work) {
  bool asleep = false;
  {
    std::lock_guard lock(mutex_);
    asleep = posted_.empty();
    posted_.push_back(std::move(work));
  }
  if (asleep && !in_loop()) wake();  // otherwise the loop checks before it sleeps
}

void EventLoop::control(int operation, int descriptor, const Watched& watched) {
  epoll_event event{};
  event.events = watched.events;
  event.data.u64 = (std::uint64_t{watched.age} << 32) | static_cast<std::uint32_t>(descriptor);
  if (epoll_ctl(epoll_.descriptor(), operation, descriptor, &event) != 0) throw system_error("cannot watch a socket");
}

void EventLoop::watch(int descriptor, bool read, bool write, Pollable& who) {
  const Watched watched{&who, next_age_, mask(read, write)};
  control(EPOLL_CTL_ADD, descriptor, watched);
  next_age_ = std::max(next_age_ + 1, 1u);  // 0 is the wake descriptor's
  watched_[descriptor] = watched;
}

void EventLoop::change(int descriptor, bool read, bool write) {
  const std::uint32_t events = mask(read, write);
  const auto found = watched_.find(descriptor);
  if (found == watched_.end()) throw Error("internal: change() of a socket that is not watched");
  if (found->second.events == events) return;
  found->second.events = events;
  control(EPOLL_CTL_MOD, descriptor, found->second);
}

void EventLoop::forget(int descriptor) {
  if (watched_.erase(descriptor) > 0) epoll_ctl(epoll_.descriptor(), EPOLL_CTL_DEL, descriptor, nullptr);
}

EventLoop::Timer EventLoop::after(double seconds, std::function<void()> work) {
  // Bounded, so that the sum stays within the clock's range.
  const std::chrono::duration<double> wait(std::clamp(std::isnan(seconds) ? 0.0 : seconds, 0.0, 1e8));
  const auto when = Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
  const Timer timer = next_timer_++;
  timers_.emplace(std::pair{when, timer}, std::move(work));
  timer_times_.emplace(timer, when);
  return timer;
}

void EventLoop::cancel(Timer timer) {
  const auto found = timer_times_.find(timer);
  if (found == timer_times_.end()) return;
  timers_.erase({found->second, timer});
  timer_times_.erase(found);
}

void EventLoop::run() {
  { std::lock_guard lock(mutex_); }
  for (;;) {
    const int count = wait();
    for (int i = 0; i < count; ++i) deliver(events_[i]);
    run_timers();
    if (!run_posted()) return;
  }
}

// Sleeps until an event, a timer, or posted work.
int EventLoop::wait() {
  using namespace std::chrono;
  auto left = nanoseconds::max();
  if (!timers_.empty()) left = std::max(nanoseconds(timers_.begin()->first.first - Clock::now()), nanoseconds(0));
  {
    std::lock_guard lock(mutex_);
    if (!posted_.empty() || stopping_) left = nanoseconds(0);
  }
  left = std::min(left, nanoseconds(hours(1)));
  int count = -1;
  if (precise_wait_) {  // pacing and short round trips need finer steps than milliseconds
    const struct timespec time = {static_cast<time_t>(left.count() / 1000000000),
                                  static_cast<long>(left.count() % 1000000000)};
    count = static_cast<int>(syscall(SYS_epoll_pwait2, epoll_.descriptor(), events_.data(),
                                     static_cast<int>(events_.size()), &time, nullptr, 0));
    if (count < 0 && errno != EINTR) precise_wait_ = false;
  }
  if (!precise_wait_) {
    const auto milliseconds = (left.count() + 999999) / 1000000;
    count = epoll_wait(epoll_.descriptor(), events_.data(), static_cast<int>(events_.size()),
                       static_cast<int>(milliseconds));
  }
  return std::max(count, 0);
}

void EventLoop::deliver(const epoll_event& event) {
  if (event.data.u64 == 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = read(wake_.descriptor(), &count, sizeof(count));
    return;
  }
  const int descriptor = static_cast<int>(event.data.u64 & 0xffffffffu);
  const auto found = watched_.find(descriptor);
  if (found == watched_.end() || found->second.age != event.data.u64 >> 32) return;
  const bool readable = event.events & (EPOLLIN | EPOLLHUP | EPOLLERR);
  Pollable& who = *found->second.who;
  if (!survives("while serving a socket", [&] { who.on_ready(readable, event.events & EPOLLOUT); }))
    forget(descriptor);  // otherwise it would be reported again at once
}

void EventLoop::run_timers() {
  if (timers_.empty()) return;
  const auto now = Clock::now();  // timers set for now by callbacks wait for the next turn
  const Timer newest = next_timer_;
  for (auto first = timers_.begin(); first != timers_.end() && first->first.first <= now;) {
    if (first->first.second >= newest) {
      ++first;
      continue;
    }
    const auto work = std::move(first->second);
    timer_times_.erase(first->first.second);
    timers_.erase(first);
    survives("in a timer", work);
    first = timers_.begin();  // the callback may have changed any timer
  }
}

// False when the loop is to end and all posted work has run.
bool EventLoop::run_posted() {
  std::vector<std::function<void()>> work;
  bool stopping = false;
  {
    std::lock_guard lock(mutex_);
    work.swap(posted_);
    stopping = stopping_;
  }
  for (auto& one : work) {
    survives("in the event loop", std::ref(one));
    one = nullptr;  // destroyed before the next one runs
  }
  return !(stopping && work.empty());
}

void EventLoop::call(const std::function<void()>& work) {
  if (in_loop()) return work();
  // Shared: the loop may still be inside it when the caller returns.
  const auto task = std::make_shared<std::packaged_task<void()>>(std::ref(work));
  auto done = task->get_future();
  post([task] { (*task)(); });
  done.get();
}

// ---- accepting connections -----------------------------------------------------------------------------------------

Acceptor::Acceptor(EventLoop& loop, const Endpoint& local, const PathSettings& settings,
                   std::function<void(Socket, const Address&)> taken, std::function<void(const std::string&)> short_of)
    : loop_(loop), taken_(std::move(taken)), short_of_(std::move(short_of)), socket_(listen_on(local, settings)) {
  loop_.call([this] { loop_.watch(socket_.descriptor(), true, false, *this); });
}

Acceptor::~Acceptor() {
  loop_.cancel(pause_);
  loop_.forget(socket_.descriptor());
}

void Acceptor::on_ready(bool, bool) {
  constexpr int kTurn = 64;  // connections, before others have their turn
  constexpr double kPause = 0.2;
  try {
    for (int i = 0; i < kTurn; ++i) {
      Address peer;
      Socket socket = accept_from(socket_.descriptor(), peer);
      if (!socket.open()) return;
      taken_(std::move(socket), peer);
    }
  } catch (const Error& error) {  // the connection stays in the kernel's queue and would be reported again at once
    short_of_(fmt::format("port {}: {}", address().port(), error.what()));
    loop_.change(socket_.descriptor(), false, false);
    pause_ = loop_.after(kPause, [this] { loop_.change(socket_.descriptor(), true, false); });
  }
}

}  // namespace maki::wan
