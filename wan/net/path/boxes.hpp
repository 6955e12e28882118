// Incoming and outgoing messages of a path, and the requests that wait for them. Used only in the path's thread, except
// Operation and Outbox::count_copy.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "wan/net/path.hpp"
#include "wan/net/path/held_memory.hpp"
#include "wan/net/path/wire.hpp"

namespace maki::wan {

// The state that a Request, the caller's thread and the I/O thread share.
class Operation {
 public:
  using Clock = std::chrono::steady_clock;

  // Called by the I/O thread; the first call counts.
  void finish(std::size_t size) { end(size, nullptr, {}); }
  void finish(Bytes bytes) {
    const std::size_t size = bytes.size;
    end(size, nullptr, std::move(bytes));
  }
  void fail(std::exception_ptr error) { end(0, std::move(error), {}); }

  // Called by the caller: waits until done, or for at most `seconds`; whether it is done. Throws the operation's error.
  bool wait(std::optional<double> seconds) const;
  std::size_t size() const;
  Bytes take();
  Clock::time_point done_at() const;

 private:
  void end(std::size_t size, std::exception_ptr error, Bytes bytes);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool done_ = false;
  std::size_t size_ = 0;
  std::exception_ptr error_;
  Bytes bytes_;
  Clock::time_point done_at_{};
};

// A posted receive: into the caller's memory, or into memory made for the message.
struct Receive {
  std::shared_ptr<Operation> operation = nullptr;
  std::span<std::byte> buffer = {};
  std::size_t limit = 0;  // of a message of unknown size
  bool any_size = false;
};

// Received data with gaps take more memory than this peer may have: the path must end.
class HeldMemoryError : public Error {
 public:
  using Error::Error;
};

class Inbox;
struct InMessage;

// A chunk that a stream is reading: only that stream writes to its place in the message. If it is destroyed without
// Inbox::finish(), its bytes are missing again.
class Landing {
 public:
  ~Landing();
  Landing(const Landing&) = delete;

  std::byte* where = nullptr;                          // place of the payload; null: nowhere, it is dropped
  bool wanted() const { return message_ != nullptr; }  // false: the chunk is arriving again on another stream

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

// Incoming data: assigns chunks to messages, and messages to receives.
class Inbox {
 public:
  // `matched(tag, index)` is called when a message and its receive have met.
  Inbox(std::uint64_t unmatched_limit, std::uint64_t message_limit, std::function<void(Tag, std::uint64_t)> matched);
  void set_memory(std::shared_ptr<HeldMemory> memory) { memory_ = std::move(memory); }  // for gaps; none: not counted
  // The account of unmatched_limit: all of it until close(), then what complete messages still hold.
  void set_promised(Holding promised) { promised_ = std::move(promised); }

  void post(Tag tag, Receive receive);
  // Throws ProtocolError if a chunk contradicts its message, overlaps another or exceeds the limits, and
  // HeldMemoryError.
  std::unique_ptr<Landing> begin(const Frame& frame);
  // The whole payload of the chunk is at landing->where. True if this completes its message: every byte was written
  // once.
  bool finish(std::unique_ptr<Landing> landing);

  // No more data will come: pending receives fail; later ones can still take complete messages.
  void close(const std::exception_ptr& error);

 private:
  friend class Landing;
  using Name = std::pair<Tag, std::uint64_t>;
  std::shared_ptr<InMessage> find_or_make(const Name& name);
  void make_room(Landing& landing);
  void meet(InMessage& message);
  void complete(const Name& name, InMessage& message);
  void abandoned(Landing& landing);

  const std::uint64_t unmatched_limit_;  // as promised to the peer
  const std::uint64_t message_limit_;
  std::function<void(Tag, std::uint64_t)> matched_;
  std::map<Tag, std::uint64_t> next_receive_;
  std::map<Name, std::shared_ptr<InMessage>> messages_;
  std::uint64_t unmatched_bytes_ = 0;
  std::shared_ptr<HeldMemory> memory_;
  Holding promised_;
  std::exception_ptr closed_;
};

struct OutMessage {
  Tag tag = 0;
  std::span<const std::byte> data;  // the caller's memory, or `owned`
  std::unique_ptr<std::byte[]> owned;
  Holding holding;                       // accounts for a copy in it
  std::shared_ptr<Operation> operation;  // null if the caller does not wait for it

  // Used by the outbox only.
  std::uint64_t index = 0;
  std::size_t cut = 0;     // bytes already cut into chunks
  bool all_cut = false;    // also for an empty message, which has one empty chunk
  std::size_t copied = 0;  // bytes of `owned`, where it is the library's copy
  int chunks_unacknowledged = 0;
  int being_written = 0;    // streams that are reading from `data` now
  bool matched = false;     // the receive is posted: no limit on sending
  std::size_t charged = 0;  // bytes on the peer's account of unmatched data
};

// A sequenced frame in flight.
struct Chunk {
  Frame frame;
  std::shared_ptr<OutMessage> message;  // null for control frames
  int stream = -1;                      // stream that had it last; -1: waits for retransmission
  std::span<const std::byte> payload() const {
    return message ? message->data.subspan(frame.offset, frame.length) : std::span<const std::byte>{};
  }
};

// Outgoing messages, in sending order, cut into numbered chunks as streams ask for them. Each chunk is kept until its
// number is acknowledged.
class Outbox {
 public:
  void set_unmatched_limit(std::uint64_t bytes) { unmatched_limit_ = bytes; }  // as the peer allows

  void add(std::shared_ptr<OutMessage> message);
  // From any thread: adds one more copy, and returns the bytes of all copies that are not acknowledged.
  std::size_t count_copy(std::size_t bytes) { return copied_ += bytes; }
  void add_control(const Frame& frame);

  // The next chunk for `stream`; null if there is none now. Chunks of long messages have at most `largest` bytes, and
  // fewer near the end of what is queued, so that all `streams` streams end together.
  std::shared_ptr<Chunk> next(int stream, std::size_t largest, int streams);
  bool waiting() const;  // next() would return a chunk

  // Begin and end of a stream's use of the payload.
  void begin_writing(Chunk& chunk);
  void end_writing(Chunk& chunk);

  void acknowledge(const ReceivedSet& set);
  void matched(Tag tag, std::uint64_t index);
  void stream_lost(int stream);  // after end_writing() of its chunk

  // Sent or queued, and not acknowledged.
  std::uint64_t bytes_outstanding() const { return bytes_outstanding_; }
  bool empty() const { return outstanding_.empty() && control_.empty() && small_.empty() && bulk_.empty(); }
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
  std::atomic<std::size_t> copied_{0};
};

}  // namespace maki::wan
