// What goes out: messages in the order of their sending, cut into numbered chunks as streams ask for them, each kept
// until its number is acknowledged. In the path's thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "wan/net/path/held_memory.hpp"
#include "wan/net/path/operation.hpp"
#include "wan/net/path/received_set.hpp"
#include "wan/net/path/wire.hpp"

namespace maki::wan {

struct OutMessage {
  Tag tag = 0;
  std::span<const std::byte> data;  // the caller's memory, or `copy`
  std::unique_ptr<std::byte[]> copy;
  Holding holding;                       // for it
  std::shared_ptr<Operation> operation;  // null where the caller does not wait for it

  // The outbox's own.
  std::uint64_t index = 0;
  std::size_t cut = 0;   // bytes that chunks have been made of
  bool all_cut = false;  // also for an empty message, which has one empty chunk
  std::size_t acknowledged = 0;
  int chunks_unacknowledged = 0;
  int being_written = 0;    // streams that are reading from `data` now
  bool matched = false;     // the receive is posted: as much as we like
  std::size_t charged = 0;  // bytes on the peer's account of unmatched data
};

// A sequenced frame on its way.
struct Chunk {
  Frame frame;
  std::shared_ptr<OutMessage> message;  // null for control frames
  int stream = -1;                      // where it was given last; -1: waits to be sent again
  std::span<const std::byte> payload() const {
    return message ? message->data.subspan(frame.offset, frame.length) : std::span<const std::byte>{};
  }
};

class Outbox {
 public:
  void set_unmatched_limit(std::uint64_t bytes) { unmatched_limit_ = bytes; }  // that the peer allows

  void add(std::shared_ptr<OutMessage> message);
  void add_control(const Frame& frame);

  // The next chunk for `stream`, null where there is none now. Data chunks have at most `largest` bytes, fewer near the
  // end so that `streams` streams end together.
  std::shared_ptr<Chunk> next(int stream, std::size_t largest, int streams);
  bool waiting() const;  // next() would give something

  // The stream has taken hold of the payload, and has let go of it.
  void begin_writing(Chunk& chunk);
  void end_writing(Chunk& chunk);

  void acknowledge(const ReceivedSet& set);
  void matched(Tag tag, std::uint64_t index);
  void stream_lost(int stream);  // after end_writing() of its chunk

  // Sent or to be sent, and not acknowledged.
  std::uint64_t bytes_outstanding() const { return bytes_outstanding_; }
  bool empty() const { return outstanding_.empty() && control_.empty() && small_.empty() && bulk_.empty(); }
  std::uint64_t bytes_sent_again() const { return bytes_sent_again_; }
  void fail_all(const std::exception_ptr& error);

 private:
  using Messages = std::deque<std::shared_ptr<OutMessage>>;
  std::shared_ptr<Chunk> again(int stream);
  std::shared_ptr<Chunk> cut_from(Messages& messages, int stream, std::size_t largest);
  std::shared_ptr<Chunk> keep(std::shared_ptr<Chunk> chunk, int stream);
  std::optional<std::size_t> may_send(const OutMessage& message, std::size_t wanted) const;
  void settle(const Chunk& chunk);
  void finish_if_done(OutMessage& message);

  std::uint64_t next_sequence_ = 1;
  std::uint64_t acknowledged_up_to_ = 0;
  std::map<Tag, std::uint64_t> next_index_;
  Messages small_, bulk_;
  std::deque<Frame> control_;
  std::deque<std::uint64_t> again_;
  std::map<std::uint64_t, std::shared_ptr<Chunk>> outstanding_;
  std::map<std::pair<Tag, std::uint64_t>, std::shared_ptr<OutMessage>> unmatched_;
  std::uint64_t unmatched_bytes_ = 0;
  std::uint64_t unmatched_limit_ = 0;
  std::uint64_t bulk_left_ = 0;  // bytes of bulk_ not yet cut
  std::uint64_t bytes_outstanding_ = 0;
  std::uint64_t bytes_sent_again_ = 0;
};

}  // namespace maki::wan
