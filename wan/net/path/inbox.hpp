// What comes in: chunks find their message, messages find their receive. In the path's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "wan/net/path/operation.hpp"
#include "wan/net/path/wire.hpp"

namespace maki::wan {

// A posted receive: into the caller's memory, or into memory made for the message.
struct Receive {
  std::shared_ptr<Operation> operation = nullptr;
  std::span<std::byte> buffer = {};
  std::size_t limit = 0;   // of a message of unknown size
  bool any_size = false;
};

struct InMessage;

// Where the payload of a chunk goes.
struct Landing {
  std::shared_ptr<InMessage> message;
  std::unique_ptr<std::byte[]> own;  // before the receive is posted
  std::byte* where = nullptr;        // null: nobody wants it
};

class Inbox {
 public:
  // `matched(tag, index)` is called when a message and its receive have met.
  Inbox(std::uint64_t unmatched_limit, std::uint64_t message_limit, std::function<void(Tag, std::uint64_t)> matched);
  void set_limits(std::uint64_t unmatched, std::uint64_t message);

  void post(Tag tag, Receive receive);
  // Throws ProtocolError where a chunk contradicts its message or the limits.
  Landing begin(const Frame& frame);
  // The payload of a chunk that had not come in before is at landing.where.
  // True when all of its message is here.
  bool finish(const Frame& frame, Landing landing);
  void abandon(Landing landing, const Frame& frame);  // the stream was lost before all of it came

  // No more will come: receives that wait now fail; complete messages can still be taken by later ones.
  void close(const std::exception_ptr& error);

 private:
  using Name = std::pair<Tag, std::uint64_t>;
  std::shared_ptr<InMessage> find_or_make(const Name& name);
  void meet(InMessage& message);
  void complete(const Name& name, InMessage& message);

  std::uint64_t unmatched_limit_, message_limit_;
  std::function<void(Tag, std::uint64_t)> matched_;
  std::map<Tag, std::uint64_t> next_receive_;
  std::map<Name, std::shared_ptr<InMessage>> messages_;
  std::uint64_t unmatched_bytes_ = 0;
  std::exception_ptr closed_;
};

}  // namespace maki::wan
