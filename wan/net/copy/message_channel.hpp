// Common parts of both sides of a copy: its progress and result, the channel of its messages (several in flight at
// once, in bounded memory), and its threads.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "wan/net/copy/message.hpp"
#include "wan/net/path.hpp"

namespace maki::wan::copy {

// ---- progress and result -------------------------------------------------------------------------------------------

// Updated while the copy runs; thread-safe.
struct Progress {
  std::atomic<std::uint64_t> files{0}, bytes{0};            // to be copied, as far as known
  std::atomic<std::uint64_t> files_done{0}, bytes_done{0};  // bytes: including those from an earlier copy
  std::atomic<std::uint64_t> moved{0};                      // bytes given to the connection, or received
  std::atomic<bool> listed{false};                          // `files` and `bytes` are final
};

// "1234 of 10001 files, 0.52 of 2.10 GB (25 %), 93.1 MB/s, 17 s left". The rate is over the last few seconds.
// `under_way`: bytes given to the connection that the other machine does not have yet; they do not count.
class Meter {
 public:
  Meter(const Progress& progress, std::function<std::uint64_t()> under_way)
      : progress_(progress), under_way_(std::move(under_way)) {}
  std::string line();

 private:
  using Clock = std::chrono::steady_clock;
  const Progress& progress_;
  std::function<std::uint64_t()> under_way_;
  struct Sample {
    Clock::time_point when;
    std::uint64_t moved;
  };
  std::vector<Sample> samples_{{Clock::now(), 0}};
};

std::string time_text(double seconds);  // "17 s", "3 min 20 s", "2 h 05 min"

// "12 files (3.40 GB) in 4 folders; 2 were there; 1 failed"
std::string summary(const Counts& counts);

using OnNote = std::function<void(bool failed, const std::string& text)>;

// Passes on the notes of a copy, from any of its threads, one at a time.
class Notes {
 public:
  explicit Notes(OnNote on_note) : on_note_(std::move(on_note)) {}
  void add(bool failed, const std::string& text);
  std::uint64_t failed() const;

 private:
  OnNote on_note_;
  mutable std::mutex mutex_;
  std::uint64_t failed_ = 0;
};

// ---- messages in flight --------------------------------------------------------------------------------------------

// Bytes that several connections have in flight together.
using UnderWay = std::atomic<std::size_t>;

// Thread-safe, but for each tag one thread sends and one receives at a time. All throw PathError once the connection is
// lost. Tests override the virtual functions, to act between messages.
class MessageChannel {
 public:
  static constexpr std::size_t kUnderWay = 64 << 20;      // bytes of file contents each way
  static constexpr std::size_t kAllUnderWay = 256 << 20;  // of all that share an UnderWay; above, one message each
  // The most that a conforming peer sends before it is received: suitable as a path's unmatched_limit.
  static constexpr std::size_t kUnmatched = kUnderWay + kMaxBatch + 8 * kMaxMessage;

  explicit MessageChannel(Path path, std::shared_ptr<UnderWay> all = std::make_shared<UnderWay>(0))
      : peer_(path.status().peer), all_(std::move(all)), path_(std::move(path)) {}
  virtual ~MessageChannel();
  // Returns when the message fits among those in flight.
  virtual void send(Tag tag, Bytes message);
  virtual std::optional<Bytes> receive_for(Tag tag, double seconds);  // nothing if none arrived in time
  Bytes receive(Tag tag) { return *receive_for(tag, 1e9); }
  // Bytes sent that the other machine does not have yet.
  std::uint64_t under_way() { return path_.status().outstanding; }
  void flush();    // waits until the other machine has all of them
  void give_up();  // breaks the connection: waiting calls throw PathError now
  const std::string& peer() const { return peer_; }
  // Throws PathError after give_up(): for threads busy with other things than messages.
  void check() const {
    if (given_up_) throw PathError("The connection to " + peer_ + " was given up");
  }
  Path& path() { return path_; }

 private:
  struct Lane {  // of one tag
    std::mutex sending;
    std::deque<std::pair<Request, std::size_t>> sent;  // with their sizes
    std::size_t bytes = 0;                             // of all of them
    std::mutex receiving;
    std::deque<Request> posted;
  };
  void wait_for_oldest(Lane& lane);
  bool has_room(const Lane& lane, std::size_t bytes) const;
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

// The threads of one copy: when one fails, the connection is given up, so that none waits for ever.
class Workers {
 public:
  explicit Workers(MessageChannel& channel) : channel_(channel) {}

  void start(std::function<void()> work) {
    run([&] { threads_.emplace_back([this, work = std::move(work)] { run(work); }); });
  }
  // Runs work in the caller's thread, under the same rule.
  void run(const std::function<void()>& work) {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!first_) first_ = std::current_exception();
      channel_.give_up();
      if (on_failure) on_failure();
    }
  }
  // Waits for all, and rethrows the first failure.
  void finish() {
    threads_.clear();
    if (first_) std::rethrow_exception(first_);
  }

  std::function<void()> on_failure;  // set before start: wakes threads that wait for each other

 private:
  MessageChannel& channel_;
  std::mutex mutex_;
  std::exception_ptr first_;
  std::vector<std::jthread> threads_;  // last: they use the others until they are joined
};

}  // namespace maki::wan::copy
