// The working part of a Path, and its streams. In one EventLoop.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "wan/net/path.hpp"
#include "wan/net/path/boxes.hpp"
#include "wan/net/path/dial.hpp"
#include "wan/net/path/held_memory.hpp"
#include "wan/net/path/wire.hpp"
#include "wan/net/secure/channel.hpp"
#include "wan/net/socket/event_loop.hpp"

namespace maki::wan {

class PathCore;

// One stream while its connection lives: frames out, frames in. Any call to its path may end the stream: it is deleted
// later, not inside the call.
class Stream final : public Pollable {
 public:
  using Clock = EventLoop::Clock;

  Stream(PathCore& path, int number, std::unique_ptr<Channel> channel);
  ~Stream() override { stop(); }

  int number() const { return number_; }
  bool idle() const { return !ended_ && !writing(); }
  bool ended() const { return ended_; }
  const Channel& channel() const { return *channel_; }

  void start();  // watches the socket; nothing is read inside this call
  void send_control(const Frame& frame, std::vector<std::byte> payload = {});
  void pump();       // writes until the socket is full, at most a chunk at a time
  void break_off();  // like a network failure
  void give_up(const std::string& why) { end(why); }
  void stop();    // nothing is read or written after this, and the path gets no more calls
  void finish();  // stop(), after writing what the socket still takes

  const Clock::time_point born = Clock::now();
  Clock::time_point last_heard = born, last_ping{};
  std::uint64_t sent = 0, received = 0;  // payload bytes of data frames
  std::uint64_t written = 0;             // bytes of all frames

  void on_ready(bool readable, bool writable) override;

 private:
  bool writing() const { return head_done_ < head_.size() || body_done_ < body_.size(); }
  void let_go();  // of the chunk being written: none of its bytes are read after this
  bool load();
  void append(const Frame& frame, std::span<const std::byte> payload);
  void write_some();
  bool flush();
  void want_write(bool want);
  void read_later();
  void read_some();
  bool read_more(std::size_t& taken);
  void take(std::span<const std::byte> bytes);
  void begin_frame();
  void finish_frame();
  void end(const std::string& why);

  PathCore& path_;
  const int number_;
  std::unique_ptr<Channel> channel_;
  bool ended_ = false, wants_write_ = false, flushed_ = true, watched_ = false;

  // Out: headers, control frames and small chunks are copied together; a large payload is written from its own memory.
  struct Control {
    Frame frame;
    std::vector<std::byte> payload;
  };
  std::deque<Control> control_;
  std::vector<std::byte> head_;
  std::span<const std::byte> body_;
  std::size_t head_done_ = 0, body_done_ = 0;
  std::shared_ptr<Chunk> chunk_;  // the owner of the payload in body_

  // In.
  std::array<std::byte, 4096> staging_;
  std::array<std::byte, kFrameBytes> header_;
  std::size_t header_filled_ = 0;
  bool in_payload_ = false;
  Frame frame_;
  std::size_t payload_filled_ = 0;
  std::unique_ptr<Landing> landing_;
  std::vector<std::byte> control_payload_, waste_;
};

// The listening side's data for a new path, from a Hello with is_new().
struct AcceptedSession {
  SessionId session{};
  std::string identity;  // of the peer, authenticated
  Hello hello;
  Address peer;
  PathSettings settings;  // of the Listener; `streams` as in the Hello, `unmatched_limit` as in the Welcome
  Holding promised;       // accounts for unmatched_limit
};

// Owned by handles, by its streams' callbacks and by the session table. Its parts: path_core.cpp (connecting, closing,
// giving up; requests of streams, pacing, acknowledgements) and path_streams.cpp (streams connected and lost).
class PathCore final : public std::enable_shared_from_this<PathCore> {
 public:
  using Clock = EventLoop::Clock;

  PathCore(EventLoop& loop, const PathSettings& settings, Side side, std::string peer);

  // ---- any thread ----
  void connect(const DialPlan& plan, double within);  // waits for the session (0: with patience); throws
  static std::shared_ptr<PathCore> accept(EventLoop& loop, AcceptedSession session);  // listening side
  Request send(Tag tag, std::span<const std::byte> message, std::unique_ptr<std::byte[]> owned = nullptr);
  Request receive(Tag tag, Receive receive);
  PathStatus status();
  PathSettings settings();
  void change(const PathSettings& settings);
  void drop_stream(int number);
  bool close(double seconds);
  // Adds a greeted stream, whose Welcome has been sent in full. `number`, `epoch` as in the Hello.
  void attach(int number, unsigned epoch, std::unique_ptr<Channel> channel);
  long epoch_of(int number) const;  // the stream's present epoch (0: never connected), -1 if the path has ended
  // The number of streams with connections, and whether this one has one.
  int open_streams() const { return open_streams_; }
  bool is_open(int number) const { return connections_[static_cast<std::size_t>(number)] > 0; }

  // ---- for its streams: the loop's thread, as all that follows ----
  EventLoop& loop() { return loop_; }
  const PathSettings& stream_settings() const { return settings_; }
  std::shared_ptr<Chunk> next_chunk(Stream& stream);
  bool take_acknowledgement(std::vector<std::byte>& payload);  // false: none is due
  void begin_writing(Chunk& chunk) { outbox_.begin_writing(chunk); }
  void end_writing(Chunk& chunk) { outbox_.end_writing(chunk); }
  bool has_received(std::uint64_t sequence) const { return received_.contains(sequence); }
  std::unique_ptr<Landing> begin_data(const Frame& frame);
  void finish_data(const Frame& frame, std::unique_ptr<Landing> landing);
  void control(Stream& stream, const Frame& frame, std::span<const std::byte> payload);
  void received_data(Stream& stream);
  void ended(Stream& stream, const std::string& why);

 private:
  struct Slot {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Dial> dial;
    EventLoop::Timer retry = 0;
    unsigned epoch = 0;  // of the present or last stream here
    unsigned tried = 0;  // of the latest attempt
    double pause = 0;    // before the next attempt
  };

  // begin and end
  void give_up(const PathError& error, bool tell_peer);
  void send_goodbye(const std::string& reason);
  void tear_down();
  void session_stands(const SessionId& session, std::uint64_t peer_unmatched, std::uint64_t peer_message,
                      double peer_patience);
  PathError lost_error(double silent) const;
  void rethrow_if_over() const;
  // path_streams.cpp
  void dial(int number);
  void dialed(int number, std::unique_ptr<Channel> channel, const Welcome& welcome);
  void dial_failed(int number, DialFailure failure, const std::string& reason);
  void dial_missing();
  void retry_later(int number);
  void adopt(int number, unsigned epoch, std::unique_ptr<Channel> channel);
  void set_options(const Channel& channel, const PathSettings& settings);
  void pace_long_sends();
  void remove(int number);
  void count_connection(int number, int change);
  void note_up();  // whether a stream is up
  void tick();
  void allow_for_sleep(Clock::time_point now);
  void check_streams(Clock::time_point now);
  int streams_up() const;
  void log_streams(const std::string& text);
  void up_again(double after);
  // traffic
  bool note_received(std::uint64_t sequence);
  template <class Work>
  auto within_memory(Work work);
  void kick();
  bool pacing_allows(std::size_t bytes);
  void acknowledge_soon(bool at_once);
  void take_pong(const Frame& frame);
  void goodbye_came(std::span<const std::byte> words);

  EventLoop& loop_;
  PathSettings settings_;  // the loop's copy
  const Side side_;
  std::string peer_;  // for messages
  DialPlan plan_;     // connecting side
  SessionId session_{};
  std::string identity_;
  bool standing_ = false;  // a session exists
  bool spoken_ = false;    // the peer has sent more than a greeting
  bool quiet_ = false;     // logs nothing while it connects: the caller makes only short attempts
  bool farewell_ = false, over_ = false, peer_said_goodbye_ = false;  // farewell: we have said goodbye
  double patience_ = 0;                                               // the shorter of both sides'
  std::string last_failure_;                                          // of the latest attempt to connect
  std::string last_logged_;
  std::optional<Clock::time_point> down_since_;  // without a stream

  Outbox outbox_;
  Inbox inbox_;
  ReceivedSet received_;
  Holding received_holding_;  // for gaps in received_
  std::vector<Slot> slots_;
  std::atomic<int> open_streams_{0};           // with connections
  std::vector<std::atomic<int>> connections_;  // of each stream: two while one replaces the other
  int dialing_ = 0;
  std::size_t turn_ = 0;          // the stream that is asked first
  Clock::time_point last_heard_;  // anything from the peer
  EventLoop::Timer tick_ = 0;
  Clock::time_point ticked_ = Clock::now();
  std::shared_ptr<PathCore> self_;  // keeps this alive while the loop may call

  bool acknowledgement_due_ = false;  // on the next frame that any stream writes
  EventLoop::Timer acknowledgement_timer_ = 0;
  std::uint64_t unacknowledged_ = 0;  // bytes received since the last acknowledgement

  bool long_sends_ = false;  // there was a long send: the kernel paces all streams
  double tokens_ = 0;        // bytes that pacing allows now
  Clock::time_point tokens_at_;
  EventLoop::Timer pacing_timer_ = 0;

  std::vector<double> round_trips_;  // the latest ones
  std::uint64_t pings_ = 0;
  Clock::time_point born_;
  std::uint64_t sent_ = 0, received_bytes_ = 0, reconnections_ = 0;

  // Shared with the callers' threads.
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<unsigned> epochs_;
  std::exception_ptr end_;              // why the path is over
  std::shared_ptr<HeldMemory> memory_;  // of the peer; set before the first send
  bool connected_ = false, up_ = false, drained_ = true, gone_ = false;
  std::atomic<std::uint64_t> peer_message_limit_{~std::uint64_t{0}};
};

}  // namespace maki::wan
