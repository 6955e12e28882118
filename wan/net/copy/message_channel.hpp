// Messages for a copy, several under way at once in bounded memory. Over a Path; tests put something else in its place.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "wan/net/copy/message.hpp"
#include "wan/net/path.hpp"

namespace maki::wan::copy {

// Any thread, but of each tag one sends, and one receives, at a time. All throw PathError once the connection is gone.
class MessageChannel {
 public:
  virtual ~MessageChannel() = default;
  // Returns when there is room for it among the messages under way.
  virtual void send(Tag tag, Bytes message) = 0;
  virtual Bytes receive(Tag tag) = 0;
  virtual std::optional<Bytes> receive_for(Tag tag, double seconds) = 0;  // nothing where none came in time
  virtual void flush() = 0;    // until the other side's machine has all that was sent
  virtual void give_up() = 0;  // breaks the connection: whoever waits here gets its PathError now
  virtual bool given_up() const = 0;
  virtual std::string peer() const = 0;
  // Throws PathError once it was given up: for whoever is busy with something else than messages.
  void check() const {
    if (given_up()) throw PathError("The connection to " + peer() + " was given up");
  }
};

// Bytes that several connections have under way together.
using UnderWay = std::atomic<std::size_t>;

class PathChannel : public MessageChannel {
 public:
  static constexpr std::size_t kUnderWay = 64 << 20;      // bytes of file contents each way
  static constexpr std::size_t kAllUnderWay = 256 << 20;  // of all that share an UnderWay; above, each has one message
  // What a peer that keeps to this may send before it is asked for: of use as a path's unmatched_limit.
  static constexpr std::size_t kUnmatched = kUnderWay + kMaxBatch + 8 * kMaxMessage;

  explicit PathChannel(Path path, std::shared_ptr<UnderWay> all = std::make_shared<UnderWay>(0))
      : peer_(path.status().peer), all_(std::move(all)), path_(std::move(path)) {}
  ~PathChannel() override;
  void send(Tag tag, Bytes message) override;
  Bytes receive(Tag tag) override;
  std::optional<Bytes> receive_for(Tag tag, double seconds) override;
  void flush() override;
  void give_up() override;
  bool given_up() const override { return given_up_; }
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
  void wait_for_oldest(Lane& lane);
  bool has_room(const Lane& lane, std::size_t bytes) const;
  Request& next_posted(Tag tag);
  Lane& lane(Tag tag) { return lanes_.at(static_cast<std::size_t>(tag)); }

  template <class Start>
  Request start(Start start);

  std::array<Lane, 5> lanes_;
  std::string peer_;
  std::shared_ptr<UnderWay> all_;
  std::mutex closing_;  // no call begins once the path is closed
  std::atomic<bool> given_up_{false};
  Path path_;
};

}  // namespace maki::wan::copy
