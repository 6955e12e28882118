// What comes in: chunks find their message, messages find their receive. In the path's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "wan/net/path/held_memory.hpp"
#include "wan/net/path/operation.hpp"
#include "wan/net/path/wire.hpp"

namespace maki::wan {

// A posted receive: into the caller's memory, or into memory made for the message.
struct Receive {
  std::shared_ptr<Operation> operation = nullptr;
  std::span<std::byte> buffer = {};
  std::size_t limit = 0;  // of a message of unknown size
  bool any_size = false;
};

// The gaps in what came are more than may be held of this peer: the path has to end.
class HeldMemoryError : public Error {
 public:
  using Error::Error;
};

class Inbox;
struct InMessage;

// A chunk that a stream is reading: only that stream writes to its place in the message. Where it goes without
// Inbox::finish(), its bytes are missing again.
class Landing {
 public:
  ~Landing();
  Landing(const Landing&) = delete;

  std::byte* where = nullptr;                          // of the payload; null: nobody wants it
  bool wanted() const { return message_ != nullptr; }  // false: the chunk is coming again on another stream

 private:
  friend class Inbox;
  friend struct InMessage;
  Landing(Inbox& inbox, const Frame& frame, std::shared_ptr<InMessage> message);
  void let_go();

  Inbox& inbox_;
  const Frame frame_;
  std::shared_ptr<InMessage> message_;
  std::unique_ptr<std::byte[]> own_;  // before the receive is posted
};

class Inbox {
 public:
  // `matched(tag, index)` is called when a message and its receive have met.
  Inbox(std::uint64_t unmatched_limit, std::uint64_t message_limit, std::function<void(Tag, std::uint64_t)> matched);
  void set_message_limit(std::uint64_t bytes) { message_limit_ = bytes; }
  void set_memory(std::shared_ptr<HeldMemory> memory) { memory_ = std::move(memory); }  // for gaps; none: not counted
  void set_promised(Holding promised) {
    promised_ = std::move(promised);
  }  // unmatched_limit, for as long as it may be filled

  void post(Tag tag, Receive receive);
  // Throws ProtocolError where a chunk contradicts its message, overlaps another or exceeds the limits, and
  // HeldMemoryError.
  std::unique_ptr<Landing> begin(const Frame& frame);
  // The whole payload of the chunk is at landing->where. True when all of its message is here: every byte was written
  // once.
  bool finish(std::unique_ptr<Landing> landing);

  // No more will come: receives that wait now fail; complete messages can still be taken by later ones.
  void close(const std::exception_ptr& error);

 private:
  friend class Landing;
  using Name = std::pair<Tag, std::uint64_t>;
  std::shared_ptr<InMessage> find_or_make(const Name& name);
  void make_room(Landing& landing);
  void meet(InMessage& message);
  void complete(const Name& name, InMessage& message);
  void abandoned(Landing& landing);

  const std::uint64_t unmatched_limit_;  // the peer was promised it
  std::uint64_t message_limit_;
  std::function<void(Tag, std::uint64_t)> matched_;
  std::map<Tag, std::uint64_t> next_receive_;
  std::map<Name, std::shared_ptr<InMessage>> messages_;
  std::uint64_t unmatched_bytes_ = 0;
  std::shared_ptr<HeldMemory> memory_;
  Holding promised_;
  std::exception_ptr closed_;
};

}  // namespace maki::wan
