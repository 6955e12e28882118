#include "host/comm/payload_transfer.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "kernels/device/stream.hpp"
#include "kernels/error.hpp"

namespace maki {
namespace {

using Look = Communicator::Look;
thread_local std::vector<FollowedTransfers*> of_this_thread;

}  // namespace

FollowedTransfers::FollowedTransfers(const Communicator& ranks) : ranks_(ranks) {
  of_this_thread.push_back(this);
  set_stream_waiter(&FollowedTransfers::wait_for);
}

FollowedTransfers::~FollowedTransfers() {
  try {
    const auto look = [this] { return under_way() > 0 ? Look::kNothing : Look::kDone; };
    if (std::uncaught_exceptions() == 0) ranks_.wait("an exchange between GPUs", look, [this] { return pending(); });
  } catch (const Error&) {  // nobody is left to be told
  }
  std::erase(of_this_thread, this);
  if (of_this_thread.empty()) set_stream_waiter(nullptr);
}

void FollowedTransfers::add(std::unique_ptr<PayloadTransfer> transfer) {
  under_way();
  transfers_.push_back(std::move(transfer));
}

// All are in one stream: what was begun first ends first, or is looked at again later.
std::size_t FollowedTransfers::under_way() {
  while (!transfers_.empty() && transfers_.front()->look() == Look::kDone) transfers_.erase(transfers_.begin());
  return transfers_.size();
}

std::vector<int> FollowedTransfers::pending() const {
  return transfers_.empty() ? std::vector<int>{} : transfers_.front()->pending();
}

void FollowedTransfers::wait_for(const std::function<bool()>& reached) {
  const auto count = [] {
    std::size_t left = 0;
    for (FollowedTransfers* const one : of_this_thread) left += one->under_way();
    return left;
  };
  try {
    std::size_t left = count();
    if (left == 0) return;
    const auto busy = [](const FollowedTransfers* one) { return !one->transfers_.empty(); };
    const FollowedTransfers& first = **std::find_if(of_this_thread.begin(), of_this_thread.end(), busy);
    const auto look = [&] {
      const std::size_t before = std::exchange(left, count());
      if (left == 0 || reached()) return Look::kDone;
      return left < before ? Look::kMoved : Look::kNothing;
    };
    first.ranks_.wait("an exchange between GPUs", look, [&] { return first.pending(); });
  } catch (...) {  // streams that wait for what was given up come to their ends
    for (FollowedTransfers* const one : of_this_thread) one->transfers_.clear();
    throw;
  }
}

}  // namespace maki
