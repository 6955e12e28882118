// One stream of a path while its connection lives: frames out, frames in. In the path's thread only.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "wan/net/path/inbox.hpp"
#include "wan/net/path/outbox.hpp"
#include "wan/net/secure/channel.hpp"
#include "wan/net/socket/event_loop.hpp"

namespace maki::wan {

class Stream;

// What a stream asks of its path. Any of these may end the stream: it is deleted later, not inside the call.
class StreamHost {
 public:
  virtual ~StreamHost() = default;
  virtual EventLoop& loop() = 0;
  virtual const PathSettings& stream_settings() const = 0;
  // Out.
  virtual std::shared_ptr<Chunk> next_chunk(Stream& stream) = 0;
  virtual bool take_acknowledgement(std::vector<std::byte>& payload) = 0;  // false: none is due
  virtual void begin_writing(Chunk& chunk) = 0;
  virtual void end_writing(Chunk& chunk) = 0;
  // In.
  virtual bool has_received(std::uint64_t sequence) const = 0;
  virtual std::unique_ptr<Landing> begin_data(const Frame& frame) = 0;
  virtual void finish_data(const Frame& frame, std::unique_ptr<Landing> landing) = 0;
  virtual void control(Stream& stream, const Frame& frame, std::span<const std::byte> payload) = 0;
  virtual void received_data(Stream& stream) = 0;
  virtual void ended(Stream& stream, const std::string& why) = 0;
};

class Stream final : public Pollable {
 public:
  using Clock = EventLoop::Clock;

  Stream(StreamHost& host, int number, unsigned epoch, std::unique_ptr<Channel> channel);
  ~Stream() override;

  int number() const { return number_; }
  unsigned epoch() const { return epoch_; }
  bool usable() const { return !ended_ && !retiring_; }  // takes chunks
  bool idle() const { return usable() && !writing(); }
  bool retired_by_peer() const { return peer_retired_; }
  bool ended() const { return ended_; }
  const Channel& channel() const { return *channel_; }

  void start();  // watches the socket; nothing is read inside this call
  void send_control(const Frame& frame, std::vector<std::byte> payload = {});
  void pump();       // writes as much as the socket takes, at most a chunk's worth at a time
  void retire();     // sends what it has begun, then kRetire, and then nothing more
  void break_off();  // as if the network had
  void give_up(const std::string& why) { end(why); }
  void stop();    // nothing is read or written after this, and the host hears nothing more of it
  void finish();  // stop(), after the last words as far as the socket takes them

  const Clock::time_point born = Clock::now();
  Clock::time_point last_heard = born, last_ping{};
  std::uint64_t sent = 0, received = 0;  // payload bytes of data frames

  void on_ready(bool readable, bool writable) override;

 private:
  bool writing() const { return head_done_ < head_.size() || body_done_ < body_.size(); }
  void let_go();  // of the chunk being written: no byte of it is read after this
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

  StreamHost& host_;
  const int number_;
  const unsigned epoch_;
  std::unique_ptr<Channel> channel_;
  bool ended_ = false, retiring_ = false, retire_sent_ = false, peer_retired_ = false;
  bool wants_write_ = false, flushed_ = true, watched_ = false;

  // Out: headers, control frames and small chunks are copied together; a large payload follows from where it lies.
  struct Control {
    Frame frame;
    std::vector<std::byte> payload;
  };
  std::deque<Control> control_;
  std::vector<std::byte> head_;
  std::span<const std::byte> body_;
  std::size_t head_done_ = 0, body_done_ = 0;
  std::shared_ptr<Chunk> chunk_;  // whose payload body_ is

  // In.
  std::array<std::byte, 4096> staging_;
  std::array<std::byte, kFrameBytes> header_;
  std::size_t header_filled_ = 0;
  bool in_payload_ = false;
  Frame frame_;
  std::size_t payload_filled_ = 0;
  std::unique_ptr<Landing> landing_;
  std::vector<std::byte> control_payload_, waste_;
  // Guards against deletion inside a callback of the host.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace maki::wan
