#include "wan/net/path/boxes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace maki::wan {

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
  // An unwanted message without data here leaves nothing behind.
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

}  // namespace maki::wan
