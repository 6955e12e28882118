#include "wan/net/path/operation.hpp"

namespace maki::wan {

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

bool Operation::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

bool Operation::test() const {
  const std::lock_guard lock(mutex_);
  if (done_ && error_) std::rethrow_exception(error_);
  return done_;
}

void Operation::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_; });
  if (error_) std::rethrow_exception(error_);
}

bool Operation::wait_for(double seconds) const {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return done_; })) return false;
  if (error_) std::rethrow_exception(error_);
  return true;
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

bool Request::test() { return operation_ == nullptr || operation_->test(); }
void Request::wait() {
  if (operation_) operation_->wait();
}
bool Request::wait_for(double seconds) { return operation_ == nullptr || operation_->wait_for(seconds); }
std::size_t Request::size() const { return operation_ ? operation_->size() : 0; }
Bytes Request::take() { return operation_ ? operation_->take() : Bytes{}; }
std::chrono::steady_clock::time_point Request::done_at() const {
  return operation_ ? operation_->done_at() : std::chrono::steady_clock::time_point{};
}

}  // namespace maki::wan
