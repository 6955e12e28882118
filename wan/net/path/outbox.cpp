#include "wan/net/path/boxes.hpp"

#include <algorithm>

#include "wan/net/path.hpp"

namespace maki::wan {
namespace {

constexpr std::size_t kSmall = 16 << 10;   // these go before bulk data
constexpr std::size_t kRecord = 16 << 10;  // of TLS: a chunk with its header fills whole records
constexpr std::size_t kSharesLeft = 2;     // near the end of the queue, each stream gets this fraction of its share

// The smallest piece can be sent at once even on a stream that has paused: TCP's initial window is ten segments of 1448
// bytes, one of which is left for an acknowledgement sent before.
constexpr std::size_t kLeast = 12 << 10;

std::size_t whole_records(std::size_t bytes) { return std::max(kLeast, bytes / kRecord * kRecord) - kFrameBytes; }

// Inserts behind all messages of equal urgency.
void queue_up(std::deque<std::shared_ptr<OutMessage>>& messages, std::shared_ptr<OutMessage> message) {
  auto place = messages.end();
  const int urgency = urgency_of(message->tag);
  while (place != messages.begin() && urgency_of((*std::prev(place))->tag) < urgency) --place;
  messages.insert(place, std::move(message));
}

}  // namespace

void Outbox::add(std::shared_ptr<OutMessage> message) {
  message->index = next_index_[message->tag]++;
  bytes_outstanding_ += message->data.size();
  unmatched_.emplace(std::pair{message->tag, message->index}, message);
  if (message->data.size() <= kSmall) {
    queue_up(small_, std::move(message));
  } else {
    bulk_left_ += message->data.size();
    queue_up(bulk_, std::move(message));
  }
}

void Outbox::add_control(const Frame& frame) { control_.push_back(frame); }

// The part of `wanted` bytes of a message that the peer's account of unmatched data still allows.
std::optional<std::size_t> Outbox::may_send(const OutMessage& message, std::size_t wanted) const {
  if (message.matched) return wanted;
  const std::uint64_t left = unmatched_limit_ - std::min(unmatched_limit_, unmatched_bytes_);
  if (left < kUnmatchedCost + std::min<std::size_t>(wanted, 1)) return std::nullopt;
  return std::min<std::uint64_t>(wanted, left - kUnmatchedCost);
}

bool Outbox::waiting() const {
  if (!control_.empty()) return true;
  for (const std::uint64_t sequence : again_)
    if (outstanding_.contains(sequence)) return true;
  for (const Messages* messages : {&small_, &bulk_})
    for (const auto& message : *messages)
      if (may_send(*message, std::min<std::size_t>(message->data.size(), 1))) return true;
  return false;
}

std::shared_ptr<Chunk> Outbox::keep(std::shared_ptr<Chunk> chunk, int stream) {
  chunk->stream = stream;
  chunk->frame.sequence = next_sequence_++;
  outstanding_.emplace_hint(outstanding_.end(), chunk->frame.sequence, chunk);
  return chunk;
}

std::shared_ptr<Chunk> Outbox::again(int stream) {
  while (!again_.empty()) {
    const auto found = outstanding_.find(again_.front());
    again_.pop_front();
    if (found == outstanding_.end() || found->second->stream >= 0) continue;  // acknowledged meanwhile
    found->second->stream = stream;
    bytes_sent_again_ += found->second->frame.length;
    return found->second;
  }
  return nullptr;
}

std::shared_ptr<Chunk> Outbox::cut_from(Messages& messages, int stream, std::size_t largest) {
  for (auto at = messages.begin(); at != messages.end(); ++at) {
    const std::shared_ptr<OutMessage> message = *at;
    const std::size_t left = message->data.size() - message->cut;
    const std::optional<std::size_t> allowed = may_send(*message, std::min(left, largest));
    if (!allowed) continue;
    const std::size_t length = *allowed;
    auto chunk = std::make_shared<Chunk>();
    chunk->message = message;
    chunk->frame = {.type = FrameType::kData,
                    .length = static_cast<std::uint32_t>(length),
                    .tag = message->tag,
                    .index = message->index,
                    .total = message->data.size(),
                    .offset = message->cut};
    message->cut += length;
    ++message->chunks_unacknowledged;
    if (!message->matched) {
      message->charged += length + kUnmatchedCost;
      unmatched_bytes_ += length + kUnmatchedCost;
    }
    if (&messages == &bulk_) bulk_left_ -= length;
    if (message->cut == message->data.size()) {
      message->all_cut = true;
      messages.erase(at);
    }
    return keep(std::move(chunk), stream);
  }
  return nullptr;
}

std::shared_ptr<Chunk> Outbox::next(int stream, std::size_t largest, int streams) {
  if (auto chunk = again(stream)) return chunk;
  if (!control_.empty()) {
    auto chunk = std::make_shared<Chunk>();
    chunk->frame = control_.front();
    control_.pop_front();
    return keep(std::move(chunk), stream);
  }
  if (auto chunk = cut_from(small_, stream, kSmall)) return chunk;
  std::size_t piece = largest;
  if (streams > 1) piece = std::min(piece, bulk_left_ / (kSharesLeft * static_cast<std::size_t>(streams)));
  return cut_from(bulk_, stream, whole_records(piece));
}

void Outbox::begin_writing(Chunk& chunk) {
  if (chunk.message) ++chunk.message->being_written;
}

void Outbox::end_writing(Chunk& chunk) {
  if (!chunk.message) return;
  --chunk.message->being_written;
  finish_if_done(*chunk.message);
}

void Outbox::finish_if_done(OutMessage& message) {
  if (!message.all_cut || message.chunks_unacknowledged > 0 || message.being_written > 0) return;
  if (message.operation) message.operation->finish(message.data.size());
  message.operation.reset();
  message.owned.reset();  // no longer read, though the message counts until its receive is posted
  message.holding = {};
}

void Outbox::settle(const Chunk& chunk) {
  if (!chunk.message) return;
  OutMessage& message = *chunk.message;
  message.acknowledged += chunk.frame.length;
  --message.chunks_unacknowledged;
  bytes_outstanding_ -= chunk.frame.length;
  finish_if_done(message);
}

void Outbox::acknowledge(const ReceivedSet& set) {
  if (set.all_up_to() >= next_sequence_ || (!set.ranges().empty() && set.ranges().rbegin()->second >= next_sequence_))
    throw ProtocolError("The peer acknowledges what was never sent");
  const auto settle_range = [&](auto first, auto last) {
    for (auto at = first; at != last; at = outstanding_.erase(at)) settle(*at->second);
  };
  if (set.all_up_to() > acknowledged_up_to_) {
    acknowledged_up_to_ = set.all_up_to();
    settle_range(outstanding_.begin(), outstanding_.upper_bound(acknowledged_up_to_));
  }
  for (const auto& [first, last] : set.ranges())
    settle_range(outstanding_.lower_bound(first), outstanding_.upper_bound(last));
}

void Outbox::matched(Tag tag, std::uint64_t index) {
  const auto found = unmatched_.find({tag, index});
  if (found == unmatched_.end()) throw ProtocolError("The peer asks for a message that was never sent");
  unmatched_bytes_ -= found->second->charged;
  found->second->charged = 0;
  found->second->matched = true;
  unmatched_.erase(found);
}

void Outbox::stream_lost(int stream) {
  for (const auto& [sequence, chunk] : outstanding_) {
    if (chunk->stream != stream) continue;
    chunk->stream = -1;
    again_.push_back(sequence);
  }
}

void Outbox::fail_all(const std::exception_ptr& error) {
  const auto fail = [&](const std::shared_ptr<OutMessage>& message) {
    if (message && message->operation) message->operation->fail(error);
  };
  for (const auto& message : small_) fail(message);
  for (const auto& message : bulk_) fail(message);
  for (const auto& [sequence, chunk] : outstanding_) fail(chunk->message);
  small_.clear();
  bulk_.clear();
  control_.clear();
  again_.clear();
  outstanding_.clear();
  unmatched_.clear();
}

}  // namespace maki::wan
