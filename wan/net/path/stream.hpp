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

class PathCore;

// Whatever it asks of its path may end it: it is deleted later, not inside the call.
class Stream final : public Pollable {
 public:
  using Clock = EventLoop::Clock;

  Stream(PathCore& path, int number, std::unique_ptr<Channel> channel);
  ~Stream() override;

  int number() const { return number_; }
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
  void stop();    // nothing is read or written after this, and the path hears nothing more of it
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

  PathCore& path_;
  const int number_;
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
  // False once it is deleted, which may happen inside a call of the path.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace maki::wan
