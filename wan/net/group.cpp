#include "wan/net/group.hpp"

#include <algorithm>
#include <deque>
#include <exception>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

namespace maki::wan {
namespace {

// Operations on several paths: waits for all of them, then throws what the first failing one failed with.
class Together {
 public:
  template <class Start>
  void start(Start start) {
    try {
      requests_.push_back(start());
    } catch (...) {
      requests_.emplace_back();
      keep();
    }
  }
  void wait() {
    for (Request& request : requests_) {
      try {
        request.wait();
      } catch (...) {
        keep();
      }
    }
    if (error_) std::rethrow_exception(error_);
  }
  Request& operator[](std::size_t i) { return requests_[i]; }

 private:
  void keep() {
    if (!error_) error_ = std::current_exception();
  }
  std::vector<Request> requests_;
  std::exception_ptr error_;
};

void check_counts(std::size_t paths, std::size_t parts, const char* what) {
  if (paths != parts)
    throw Error("The parts do not match the paths",
                std::to_string(paths) + " paths, " + std::to_string(parts) + " " + what, "give one for each path");
}

// A message that is being passed on.
struct Passing {
  Bytes bytes;
  Request sent;
};

// Messages that a path still reads from when their relay ends: theirs until it lets go of them. Never destroyed, because
// paths may be closed as late as the program's end.
void leave_to_path(std::deque<Passing> messages) {
  static std::mutex mutex;
  static auto& left = *new std::list<Passing>;
  const std::lock_guard lock(mutex);
  const auto over = [](Passing& one) {
    try {
      return one.sent.test();
    } catch (...) {
      return true;
    }
  };
  left.remove_if(over);
  for (Passing& one : messages) left.push_back(std::move(one));
}

// The messages of one tag on their way from a path to another.
class OneWay {
 public:
  OneWay(Path& from, Tag from_tag, Path& to, Tag to_tag, std::size_t limit)
      : from_(from), to_(to), from_tag_(from_tag), to_tag_(to_tag), limit_(limit) {}
  ~OneWay() {
    if (!going_.empty()) leave_to_path(std::move(going_));
  }
  OneWay(const OneWay&) = delete;

  // Does what can be done at once. False where that is nothing.
  bool step() {
    bool moved = false;
    while (!going_.empty() && sent()) {
      going_.pop_front();
      moved = true;
    }
    while (dead_ == nullptr && going_.size() < kInFlight && arrived()) moved = true;
    return moved;
  }

  const Path* from() const { return &from_; }
  const Path* dead() const { return dead_; }  // the path that ended, if one did
  bool finished() const { return dead_ != nullptr && going_.empty(); }
  std::exception_ptr error() const { return error_; }  // where it did not end in order

 private:
  static constexpr std::size_t kInFlight = 4;  // messages

  bool sent() {
    bool done = false;
    if (!with(to_, [&] { done = going_.front().sent.test(); })) leave_to_path(std::exchange(going_, {}));
    return done;
  }

  bool arrived() {
    const auto receive = [&] {
      if (!coming_.valid()) coming_ = from_.start_receive_any(from_tag_, limit_);
      return coming_.test();
    };
    bool there = false;
    if (!with(from_, [&] { there = receive(); }) || !there) return false;
    going_.push_back({coming_.take(), {}});
    coming_ = {};
    const auto send = [&] { going_.back().sent = to_.start_send(to_tag_, going_.back().bytes.view()); };
    if (!with(to_, send)) leave_to_path(std::exchange(going_, {}));
    return true;
  }

  // False where the path has ended.
  template <class Use>
  bool with(Path& path, Use use) {
    try {
      use();
      return true;
    } catch (const PathError& error) {
      const bool orderly = error.seconds_down() == 0 && error.bytes_outstanding() == 0;
      if (!orderly && !error_) error_ = std::current_exception();
      dead_ = &path;
      return false;
    }
  }

  Path& from_;
  Path& to_;
  Tag from_tag_, to_tag_;
  std::size_t limit_;
  Request coming_;
  std::deque<Passing> going_;
  const Path* dead_ = nullptr;
  std::exception_ptr error_;
};

// Some path has ended, and all that came from it has been passed on.
bool over(const std::list<OneWay>& ways) {
  std::vector<const Path*> ended;
  for (const OneWay& way : ways) {
    if (way.error()) std::rethrow_exception(way.error());
    if (way.dead() != nullptr) ended.push_back(way.dead());
  }
  const auto unfinished = [&](const OneWay& way) {
    return !way.finished() && std::find(ended.begin(), ended.end(), way.from()) != ended.end();
  };
  return !ended.empty() && std::none_of(ways.begin(), ways.end(), unfinished);
}

}  // namespace

std::size_t cycle(Path& to, Path& from, Tag tag, std::span<const std::byte> message, std::span<std::byte> buffer) {
  Together all;
  all.start([&] { return from.start_receive(tag, buffer); });
  all.start([&] { return to.start_send(tag, message); });
  all.wait();
  return all[0].size();
}

Bytes cycle_any(Path& to, Path& from, Tag tag, std::span<const std::byte> message, std::size_t limit) {
  Together all;
  all.start([&] { return from.start_receive_any(tag, limit); });
  all.start([&] { return to.start_send(tag, message); });
  all.wait();
  return all[0].take();
}

void scatter(std::span<Path* const> paths, Tag tag, std::span<const std::span<const std::byte>> parts) {
  check_counts(paths.size(), parts.size(), "parts");
  Together all;
  for (std::size_t i = 0; i < paths.size(); ++i) all.start([&] { return paths[i]->start_send(tag, parts[i]); });
  all.wait();
}

std::vector<std::size_t> gather(std::span<Path* const> paths, Tag tag, std::span<const std::span<std::byte>> buffers) {
  check_counts(paths.size(), buffers.size(), "buffers");
  Together all;
  for (std::size_t i = 0; i < paths.size(); ++i) all.start([&] { return paths[i]->start_receive(tag, buffers[i]); });
  all.wait();
  std::vector<std::size_t> sizes(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) sizes[i] = all[i].size();
  return sizes;
}

void relay(Path& one, Path& other, std::span<const Tag> tags, std::size_t limit, const std::function<bool()>& stop) {
  std::vector<RelayLane> lanes;
  for (const Tag tag : tags) lanes.push_back({&one, tag, &other, tag});
  relay(lanes, limit, stop);
}

void relay(std::span<const RelayLane> lanes, std::size_t limit, const std::function<bool()>& stop) {
  using Pause = std::chrono::duration<double, std::micro>;
  constexpr Pause kShortest{10}, kLongest{500};
  std::list<OneWay> ways;
  for (const RelayLane& lane : lanes) {
    ways.emplace_back(*lane.one, lane.one_tag, *lane.other, lane.other_tag, limit);
    ways.emplace_back(*lane.other, lane.other_tag, *lane.one, lane.one_tag, limit);
  }
  Pause pause = kShortest;
  while (!(stop && stop())) {
    bool moved = false;
    for (OneWay& way : ways) moved = way.step() || moved;
    if (over(ways)) return;
    pause = moved ? kShortest : std::min(2 * pause, kLongest);
    if (!moved) std::this_thread::sleep_for(pause);
  }
}

}  // namespace maki::wan
