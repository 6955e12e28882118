#include "wan/net/path/boxes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "wan/net/path.hpp"

namespace maki::wan {

// ---- data coming in ------------------------------------------------------------------------------------------------

struct InMessage {
  bool posted = false;    // a receive waits for it
  bool begun = false;     // its size is known
  bool unwanted = false;  // did not fit: its data are dropped
  std::uint64_t total = 0, received = 0;
  Receive receive;
  Bytes bytes;                  // of a receive of unknown size
  std::byte* target = nullptr;  // of a posted receive
  struct Piece {
    std::uint64_t offset, length;
    std::unique_ptr<std::byte[]> data;
  };
  std::vector<Piece> pieces;   // that arrived before the receive
  Ranges written;              // of its bytes
  Holding holding;             // accounts for `pieces`
  std::vector<Landing*> open;  // chunks that streams are reading right now

  bool whole() const { return begun && received == total; }

  // Throws ProtocolError for a chunk that overlaps another, or arrives again with other contents.
  void open_chunk(Landing& landing) {
    const Frame& frame = landing.frame_;
    const std::uint64_t end = frame.offset + frame.length;
    Landing* again = nullptr;
    bool overlaps = frame.length > 0 && written.overlaps(frame.offset, end - 1);
    for (Landing* one : open) {
      const Frame& other = one->frame_;
      if (other.sequence != frame.sequence)
        overlaps = overlaps || (other.offset < end && frame.offset < other.offset + other.length);
      else if (other.offset != frame.offset || other.length != frame.length)
        throw ProtocolError("A chunk came again as another");
      else
        again = one;
    }
    if (overlaps) throw ProtocolError("The chunks of a message overlap");
    open.push_back(&landing);
    if (again != nullptr) again->let_go();  // the peer considers that stream lost
  }
};

Landing::Landing(Inbox& inbox, const Frame& frame, std::shared_ptr<InMessage> message)
    : inbox_(inbox), frame_(frame), message_(std::move(message)) {}

Landing::~Landing() { let_go(); }

void Landing::let_go() {
  where = nullptr;
  if (message_) inbox_.abandoned(*this);
  message_.reset();
  own_.reset();
}

Inbox::Inbox(std::uint64_t unmatched_limit, std::uint64_t message_limit,
             std::function<void(Tag, std::uint64_t)> matched)
    : unmatched_limit_(unmatched_limit), message_limit_(message_limit), matched_(std::move(matched)) {}

std::shared_ptr<InMessage> Inbox::find_or_make(const Name& name) {
  auto& message = messages_[name];
  if (!message) message = std::make_shared<InMessage>();
  return message;
}

void Inbox::post(Tag tag, Receive receive) {
  const Name name{tag, next_receive_[tag]++};
  const auto found = messages_.find(name);
  const bool here = found != messages_.end() && found->second->whole();
  if (closed_ && !here) {
    receive.operation->fail(closed_);
    return;
  }
  const auto message = find_or_make(name);
  message->posted = true;
  message->receive = std::move(receive);
  if (!message->begun) return;
  meet(*message);
  matched_(name.first, name.second);
  complete(name, *message);
}

// The message's size and its receive are both known.
void Inbox::meet(InMessage& message) {
  Receive& receive = message.receive;
  const std::uint64_t room = receive.any_size ? receive.limit : receive.buffer.size();
  if (message.total > room) {
    message.unwanted = true;
    receive.operation->fail(
        std::make_exception_ptr(Error(fmt::format("A message of {} bytes does not fit", message.total),
                                      fmt::format("the receive allows {} bytes", room), "receive it with more room")));
  } else if (receive.any_size) {
    message.bytes = {std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[message.total]), message.total};
    message.target = message.bytes.data.get();
    if (message.target == nullptr) {
      message.unwanted = true;
      receive.operation->fail(
          std::make_exception_ptr(Error(fmt::format("There is no memory for a message of {} bytes", message.total), "",
                                        "receive it with a lower limit")));
    }
  } else {
    message.target = receive.buffer.data();
  }
  for (const auto& piece : message.pieces) {
    if (!message.unwanted && piece.length > 0)
      std::memcpy(message.target + piece.offset, piece.data.get(), piece.length);
    unmatched_bytes_ -= piece.length + kUnmatchedCost;
  }
  message.pieces.clear();
  for (const Landing* landing : message.open)
    if (landing->own_) unmatched_bytes_ -= landing->frame_.length + kUnmatchedCost;
  if (closed_) promised_.shrink_to(unmatched_bytes_);
}

void Inbox::complete(const Name& name, InMessage& message) {
  if (!message.whole() || !message.posted) return;
  const auto operation = message.receive.operation;
  if (!message.unwanted) {
    if (message.receive.any_size)
      operation->finish(std::move(message.bytes));
    else
      operation->finish(message.total);
  }
  messages_.erase(name);
}

std::unique_ptr<Landing> Inbox::begin(const Frame& frame) {
  if (frame.total > message_limit_)
    throw ProtocolError(fmt::format("A message of {} bytes is announced", frame.total),
                        fmt::format("the limit here is {} bytes", message_limit_));
  const Name name{frame.tag, frame.index};
  std::unique_ptr<Landing> landing(new Landing(*this, frame, find_or_make(name)));
  InMessage& message = *landing->message_;
  if (message.begun && message.total != frame.total)
    throw ProtocolError("Two chunks disagree about the size of their message");
  if (!message.begun) {
    message.begun = true;
    message.total = frame.total;
    if (message.posted) {
      meet(message);
      matched_(name.first, name.second);
    }
  }
  message.open_chunk(*landing);
  make_room(*landing);
  return landing;
}

void Inbox::make_room(Landing& landing) {
  const InMessage& message = *landing.message_;
  const Frame& frame = landing.frame_;
  if (message.unwanted) return;
  if (message.posted) {
    landing.where = message.target + frame.offset;
    return;
  }
  const std::uint64_t cost = frame.length + kUnmatchedCost;
  if (unmatched_bytes_ + cost > unmatched_limit_)
    throw ProtocolError("More data than agreed came before it was asked for",
                        fmt::format("the limit is {} bytes", unmatched_limit_));
  landing.own_.reset(new std::byte[std::max<std::size_t>(frame.length, 1)]);
  landing.where = landing.own_.get();
  unmatched_bytes_ += cost;
}

bool Inbox::finish(std::unique_ptr<Landing> landing) {
  const std::shared_ptr<InMessage> message = landing->message_;
  const Frame frame = landing->frame_;
  if (frame.length > 0) {
    if (!message->holding.grow_to(beyond_own(message->written.map().size() * kRangeCost), memory_, kRangeStep))
      throw HeldMemoryError("The chunks of a message leave too many gaps");
    message->written.add(frame.offset, frame.offset + frame.length - 1);
  }
  message->received += frame.length;
  std::erase(message->open, landing.get());
  landing->message_.reset();  // it has landed
  if (landing->own_ && !message->posted) {
    message->pieces.push_back({frame.offset, frame.length, std::move(landing->own_)});
  } else if (landing->own_ && !message->unwanted && frame.length > 0) {  // the receive was posted meanwhile
    std::memcpy(message->target + frame.offset, landing->own_.get(), frame.length);
  }
  complete({frame.tag, frame.index}, *message);
  return message->whole();
}

void Inbox::abandoned(Landing& landing) {
  InMessage& message = *landing.message_;
  std::erase(message.open, &landing);
  if (message.posted) return;
  if (landing.own_) unmatched_bytes_ -= landing.frame_.length + kUnmatchedCost;
  // A message without a receive and without data here is forgotten.
  if (!message.pieces.empty() || !message.open.empty()) return;
  const auto found = messages_.find({landing.frame_.tag, landing.frame_.index});
  if (found != messages_.end() && found->second.get() == &message) messages_.erase(found);
}

void Inbox::close(const std::exception_ptr& error) {
  closed_ = error;
  unmatched_bytes_ = 0;
  for (auto at = messages_.begin(); at != messages_.end();) {
    InMessage& message = *at->second;
    if (message.posted && !message.unwanted) message.receive.operation->fail(error);
    const bool kept = !message.posted && message.whole();
    if (kept)
      for (const auto& piece : message.pieces) unmatched_bytes_ += piece.length + kUnmatchedCost;
    at = kept ? std::next(at) : messages_.erase(at);
  }
  promised_.shrink_to(unmatched_bytes_);
}

// ---- data going out ------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kSmall = 16 << 10;   // these go before bulk data
constexpr std::size_t kRecord = 16 << 10;  // of TLS: a chunk with its header fills whole records
constexpr std::size_t kSharesLeft = 2;     // near the end of the queue a chunk is a stream's share, divided by this

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
  copied_ -= std::exchange(message.copied, 0);
  message.owned.reset();  // no longer read, though the message counts until its receive is posted
  message.holding = {};
}

void Outbox::settle(const Chunk& chunk) {
  if (!chunk.message) return;
  OutMessage& message = *chunk.message;
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
  settle_range(outstanding_.begin(), outstanding_.upper_bound(set.all_up_to()));
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
