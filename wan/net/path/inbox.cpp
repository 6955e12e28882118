#include "wan/net/path/inbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace maki::wan {

struct InMessage {
  bool posted = false;   // a receive waits for it
  bool begun = false;    // its size is known
  bool unwanted = false; // did not fit: what comes is dropped
  std::uint64_t total = 0, received = 0;
  Receive receive;
  Bytes bytes;                 // of a receive of unknown size
  std::byte* target = nullptr; // of a posted receive
  struct Piece {
    std::uint64_t offset, length;
    std::unique_ptr<std::byte[]> data;
  };
  std::vector<Piece> pieces;   // that came before the receive
  // Chunks that streams are reading right now. A message is complete only when nothing more is written to its memory.
  struct Open {
    std::uint64_t sequence, length;
    int streams;  // a chunk sent again may be on two for a while
  };
  std::vector<Open> open;

  auto find_open(std::uint64_t sequence) {
    return std::find_if(open.begin(), open.end(), [&](const Open& one) { return one.sequence == sequence; });
  }
  // Throws ProtocolError where the chunks of the message would be more than the message: they overlap, so that it could be
  // complete, and its memory be used for something else, while one of them is still coming.
  void open_chunk(const Frame& frame) {
    if (const auto found = find_open(frame.sequence); found != open.end()) {
      if (found->length != frame.length) throw ProtocolError("A chunk came again with another size");
      ++found->streams;
      return;
    }
    std::uint64_t all = received + frame.length;
    for (const Open& one : open) all += one.length;
    if (all > total) throw ProtocolError("The chunks of a message overlap");
    open.push_back({frame.sequence, frame.length, 1});
  }
  void abandon_chunk(std::uint64_t sequence) {
    if (const auto found = find_open(sequence); found != open.end() && --found->streams == 0) open.erase(found);
  }
  void finish_chunk(std::uint64_t sequence) {
    if (const auto found = find_open(sequence); found != open.end()) open.erase(found);
  }
};

Inbox::Inbox(std::uint64_t unmatched_limit, std::uint64_t message_limit,
             std::function<void(Tag, std::uint64_t)> matched)
    : unmatched_limit_(unmatched_limit), message_limit_(message_limit), matched_(std::move(matched)) {}

void Inbox::set_limits(std::uint64_t unmatched, std::uint64_t message) {
  unmatched_limit_ = unmatched;
  message_limit_ = message;
}

std::shared_ptr<InMessage> Inbox::find_or_make(const Name& name) {
  auto& message = messages_[name];
  if (!message) message = std::make_shared<InMessage>();
  return message;
}

void Inbox::post(Tag tag, Receive receive) {
  const Name name{tag, next_receive_[tag]++};
  const auto found = messages_.find(name);
  const bool here = found != messages_.end() && found->second->begun && found->second->received == found->second->total;
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
    receive.operation->fail(std::make_exception_ptr(
        Error(fmt::format("A message of {} bytes does not fit", message.total),
              fmt::format("the receive allows {} bytes", room), "receive it with more room")));
  } else if (receive.any_size) {
    message.bytes = {std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[message.total]), message.total};
    message.target = message.bytes.data.get();
    if (message.target == nullptr) {
      message.unwanted = true;
      receive.operation->fail(std::make_exception_ptr(
          Error(fmt::format("There is no memory for a message of {} bytes", message.total), "", "receive it with a lower limit")));
    }
  } else {
    message.target = receive.buffer.data();
  }
  for (const auto& piece : message.pieces) {
    if (!message.unwanted && piece.length > 0) std::memcpy(message.target + piece.offset, piece.data.get(), piece.length);
    unmatched_bytes_ -= piece.length + kUnmatchedCost;
  }
  message.pieces.clear();
}

void Inbox::complete(const Name& name, InMessage& message) {
  if (message.received < message.total || !message.begun || !message.posted) return;
  const auto operation = message.receive.operation;
  if (!message.unwanted) {
    if (message.receive.any_size)
      operation->finish(std::move(message.bytes));
    else
      operation->finish(message.total);
  }
  messages_.erase(name);
}

Landing Inbox::begin(const Frame& frame) {
  if (frame.total > message_limit_)
    throw ProtocolError(fmt::format("A message of {} bytes is announced", frame.total),
                        fmt::format("the limit here is {} bytes", message_limit_));
  const Name name{frame.tag, frame.index};
  Landing landing;
  landing.message = find_or_make(name);
  InMessage& message = *landing.message;
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
  if (!message.unwanted && !message.posted && unmatched_bytes_ + frame.length + kUnmatchedCost > 2 * unmatched_limit_ + kMaxPayload)
    // A chunk sent again may be here twice for a while, hence the allowance.
    throw ProtocolError("More data than agreed came before it was asked for",
                        fmt::format("the limit is {} bytes", unmatched_limit_));
  message.open_chunk(frame);
  if (message.unwanted) return landing;
  if (message.posted) {
    landing.where = message.target + frame.offset;
  } else {
    landing.own.reset(new std::byte[std::max<std::size_t>(frame.length, 1)]);
    landing.where = landing.own.get();
    unmatched_bytes_ += frame.length + kUnmatchedCost;
  }
  return landing;
}

bool Inbox::finish(const Frame& frame, Landing landing) {
  InMessage& message = *landing.message;
  message.finish_chunk(frame.sequence);
  message.received += frame.length;
  if (landing.own && !message.posted) {
    message.pieces.push_back({frame.offset, frame.length, std::move(landing.own)});
  } else if (landing.own) {  // the receive was posted meanwhile
    unmatched_bytes_ -= frame.length + kUnmatchedCost;
    if (!message.unwanted && frame.length > 0)
      std::memcpy(message.target + frame.offset, landing.own.get(), frame.length);
  }
  const bool whole = message.received == message.total;
  complete({frame.tag, frame.index}, message);
  return whole;
}

void Inbox::abandon(Landing landing, const Frame& frame) {
  if (landing.own) unmatched_bytes_ -= frame.length + kUnmatchedCost;
  landing.message->abandon_chunk(frame.sequence);
}

void Inbox::close(const std::exception_ptr& error) {
  closed_ = error;
  for (auto at = messages_.begin(); at != messages_.end();) {
    InMessage& message = *at->second;
    const bool whole = message.begun && message.received == message.total;
    if (message.posted && !message.unwanted) message.receive.operation->fail(error);
    at = !message.posted && whole ? std::next(at) : messages_.erase(at);
  }
}

}  // namespace maki::wan
