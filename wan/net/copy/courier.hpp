// Messages for a copy, several under way at once in bounded memory. Over a Path; tests put something else in its place.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

#include "wan/net/copy/message.hpp"
#include "wan/net/path.hpp"

namespace maki::wan::copy {

// Any thread, but of each tag one sends, and one receives, at a time. All throw PathError once the connection is gone.
class Courier {
 public:
  virtual ~Courier() = default;
  // Returns when there is room for it among the messages under way.
  virtual void send(Tag tag, Bytes message) = 0;
  virtual Bytes receive(Tag tag) = 0;
  virtual void flush() = 0;    // until the other side's machine has all that was sent
  virtual void give_up() = 0;  // breaks the connection: whoever waits here gets its PathError now
  virtual std::string peer() const = 0;
};

class PathCourier : public Courier {
 public:
  static constexpr std::size_t kUnderWay = 64 << 20;  // bytes of file contents each way

  explicit PathCourier(Path path) : peer_(path.status().peer), path_(std::move(path)) {}
  ~PathCourier() override;
  void send(Tag tag, Bytes message) override;
  Bytes receive(Tag tag) override;
  void flush() override;
  void give_up() override;
  std::string peer() const override { return peer_; }
  Path& path() { return path_; }

 private:
  struct Sending {
    Request request;
    Bytes message;
  };
  struct Lane {  // of one tag
    std::mutex sending;
    std::deque<Sending> sent;
    std::size_t bytes = 0;  // of those in `sent`
    std::mutex receiving;
    std::deque<Request> posted;
  };
  static void wait_for_oldest(Lane& lane);
  Lane& lane(Tag tag) { return lanes_.at(static_cast<std::size_t>(tag)); }

  template <class Start>
  Request start(Start start);

  std::array<Lane, 5> lanes_;
  std::string peer_;
  std::mutex closing_;  // no call begins once the path is closed
  bool given_up_ = false;
  Path path_;
};

}  // namespace maki::wan::copy
