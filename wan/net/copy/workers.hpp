// The threads of one copy: when one fails the connection is given up, so that none is left waiting.
#pragma once

#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "wan/net/copy/message_channel.hpp"

namespace maki::wan::copy {

class Workers {
 public:
  explicit Workers(MessageChannel& channel) : channel_(channel) {}
  ~Workers() { join(); }

  void start(std::function<void()> work) {
    run([&] { threads_.emplace_back([this, work = std::move(work)] { run(work); }); });
  }
  // In the caller's thread, under the same rule.
  void run(const std::function<void()>& work) {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!first_) first_ = std::current_exception();
      channel_.give_up();
      if (on_failure) on_failure();
    }
  }
  void join() {
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
    threads_.clear();
  }
  // Waits for all, and throws what the first one that failed threw.
  void finish() {
    join();
    if (first_) std::rethrow_exception(first_);
  }

  std::function<void()> on_failure;  // set before start: wakes those who wait for each other

 private:
  MessageChannel& channel_;
  std::mutex mutex_;
  std::exception_ptr first_;
  std::vector<std::thread> threads_;
};

}  // namespace maki::wan::copy
