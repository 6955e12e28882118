// The state that a Request, the caller's thread and the I/O thread share.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>

#include "wan/net/path.hpp"

namespace maki::wan {

class Operation {
 public:
  using Clock = std::chrono::steady_clock;

  // By the I/O thread; the first of them counts.
  void finish(std::size_t size) { end(size, nullptr, {}); }
  void finish(Bytes bytes) {
    const std::size_t size = bytes.size;
    end(size, nullptr, std::move(bytes));
  }
  void fail(std::exception_ptr error) { end(0, std::move(error), {}); }

  bool done() const;
  // By the caller: so long at most, or until it is done; whether it is. Throws what the operation failed with.
  bool wait(std::optional<double> seconds) const;
  std::size_t size() const;
  Bytes take();
  Clock::time_point done_at() const;

 private:
  void end(std::size_t size, std::exception_ptr error, Bytes bytes);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool done_ = false;
  std::size_t size_ = 0;
  std::exception_ptr error_;
  Bytes bytes_;
  Clock::time_point done_at_{};
};

}  // namespace maki::wan
