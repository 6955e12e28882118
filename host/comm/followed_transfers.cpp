#include "host/comm/followed_transfers.hpp"

#include <exception>

#include "kernels/device/error.hpp"
#include "kernels/device/stream.hpp"

namespace maki {
namespace {

using Look = Communicator::Look;
thread_local std::vector<FollowedTransfers*> all;

}  // namespace

FollowedTransfers::FollowedTransfers(const Communicator& ranks) : ranks_(ranks) {
  all.push_back(this);
  set_stream_waiter(&FollowedTransfers::wait_for);
}

FollowedTransfers::~FollowedTransfers() {
  try {
    const auto look = [this] { return under_way() ? Look::kNothing : Look::kDone; };
    if (std::uncaught_exceptions() == 0) ranks_.wait("an exchange between GPUs", look, [this] { return pending(); });
  } catch (const Error&) {  // nobody is left to be told
  }
  std::erase(all, this);
  if (all.empty()) set_stream_waiter(nullptr);
}

void FollowedTransfers::add(std::unique_ptr<PayloadTransfer> transfer) {
  under_way();
  transfers_.push_back(std::move(transfer));
}

bool FollowedTransfers::under_way() {
  std::erase_if(transfers_, [](const auto& transfer) { return transfer->look() == Look::kDone; });
  return !transfers_.empty();
}

std::vector<int> FollowedTransfers::pending() const {
  return transfers_.empty() ? std::vector<int>{} : transfers_.front()->pending();
}

bool FollowedTransfers::wait_for(const std::function<bool()>& reached) {
  try {
    FollowedTransfers* waiting = nullptr;
    for (FollowedTransfers* const one : all) {
      if (one->under_way()) waiting = one;
    }
    if (!waiting) return false;
    const auto look = [&] {
      for (FollowedTransfers* const one : all) one->under_way();
      return reached() ? Look::kDone : Look::kNothing;
    };
    waiting->ranks_.wait("an exchange between GPUs", look, [waiting] { return waiting->pending(); });
    return true;
  } catch (...) {  // streams that wait for what was given up come to their ends
    for (FollowedTransfers* const one : all) one->transfers_.clear();
    throw;
  }
}

}  // namespace maki
