#include "wan/net/tune/bench_protocol.hpp"

#include <algorithm>

namespace maki::wan {

std::span<std::byte> PayloadBuffer::of(std::size_t bytes) {
  constexpr std::size_t kBlock = 1 << 20;
  const std::size_t before = bytes_.size();
  if (before < bytes) bytes_.resize(bytes);
  std::uint64_t state = 88172645463325252ull;
  for (std::size_t i = before; i < std::min(bytes_.size(), kBlock); ++i) {  // xorshift (Marsaglia 2003)
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    bytes_[i] = static_cast<std::byte>(state >> 32);
  }
  for (std::size_t i = std::max(before, kBlock); i < bytes_.size(); i += std::min(kBlock, bytes_.size() - i))
    std::memcpy(&bytes_[i], bytes_.data(), std::min(kBlock, bytes_.size() - i));
  return std::span(bytes_).first(bytes);
}

TransferOrder TransferOrder::of(const Words& order) {
  constexpr std::uint64_t kMany = 1 << 20;
  TransferOrder given;
  given.bytes = order.integer("bytes", kLargestTransfer);
  given.count = order.integer("count", kMany);
  given.flight = order.integer("flight", kMany);
  if (given.flight == 0 || given.bytes * given.flight > kLargestTransfer)
    throw ProtocolError("the peer's measurement ordered a transfer that is too large");
  return given;
}

TransferQueue::TransferQueue(const TransferOrder& order, PayloadBuffer& memory, Start start)
    : order_(order), memory_(memory.of(order.bytes * order.flight)), start_(std::move(start)),
      under_way_(order.flight) {
  while (started_ < std::min(order_.count, order_.flight)) start_next();
}

void TransferQueue::start_next() {
  const std::uint64_t place = started_++ % order_.flight;
  under_way_[place] = start_(memory_.subspan(place * order_.bytes, order_.bytes));
}

std::chrono::steady_clock::time_point TransferQueue::finish() {
  std::chrono::steady_clock::time_point last{};
  for (std::uint64_t i = 0; i < order_.count; ++i) {
    Request& oldest = under_way_[i % order_.flight];
    oldest.wait();
    last = std::max(last, oldest.done_at());
    if (started_ < order_.count) start_next();
  }
  return last;
}

}  // namespace maki::wan
