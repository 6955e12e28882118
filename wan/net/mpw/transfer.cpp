#include "wan/net/mpw/transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "wan/net/byte_codec.hpp"

namespace maki::wan::mpw {

// ---- paths and their channels --------------------------------------------------------------------------------------

bool Link::live() {
  if (open_channels_ == 0) return false;
  try {
    const auto path = this->path();
    path->change(path->settings());  // throws once the path is over
    return true;
  } catch (const Error&) {
    return false;
  }
}

void Link::leave() {
  constexpr double kCloseSeconds = 60;
  if (--open_channels_ > 0) return;
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Path> path = std::exchange(path_, nullptr);
  lock.unlock();
  if (path) path->close(kCloseSeconds);
  shared_listener_.reset();
}

// ---- buffers in parts ----------------------------------------------------------------------------------------------

namespace {

constexpr double kLookAround = 0.1;  // seconds between looks at whether another one has failed
constexpr std::size_t kSizeBytes = 8;

std::span<const std::byte> bytes_of(const Part& part) {
  return {reinterpret_cast<const std::byte*>(part.data), part.size};
}
std::span<std::byte> room_of(const Part& part) { return {reinterpret_cast<std::byte*>(part.data), part.size}; }

Part checked(char* data, long long size) {
  if (size < 0) throw Error(fmt::format("A buffer of {} bytes", size), "", "sizes are zero or more");
  if (size > 0 && data == nullptr) throw Error(fmt::format("{} bytes at a null pointer", size));
  return {data, static_cast<std::size_t>(size)};
}

std::size_t size_from(std::span<const std::byte> bytes) {
  return bytes.size() == kSizeBytes ? ByteReader(bytes, "", "").number<std::uint64_t>() : ~std::size_t{0};
}

void send_size(const Lane& lane, std::size_t size) {
  ByteWriter out;
  out.put(std::uint64_t{size});
  lane.link->path()->start_send(lane.tag, out.bytes()).wait();  // so short a message is copied
}

[[noreturn]] void wrong_message(int channel, const std::string& what) {
  throw Error(fmt::format("Channel {}: {}", channel, what), "the two sides' calls do not match",
              "let each send meet the receive of the same size and kind, over as many channels");
}

}  // namespace

std::vector<Part> split(char* buffer, long long size, int parts) {
  if (parts < 1) throw Error(fmt::format("{} channels", parts), "", "a call needs one at least");
  const Part whole = checked(buffer, size);
  const auto count = static_cast<std::size_t>(parts);
  std::vector<Part> all;
  char* at = whole.data;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t length = whole.size / count + (i < whole.size % count ? 1 : 0);
    all.push_back({at, length});
    if (at != nullptr) at += length;
  }
  return all;
}

std::vector<Part> parts_of(char** buffers, const long long* sizes, int count) {
  std::vector<Part> all;
  for (int i = 0; i < count; ++i) all.push_back(checked(buffers[i], sizes[i]));
  return all;
}

void Exchange::send(const std::vector<Lane>& lanes, const std::vector<Part>& parts) {
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    if (parts[i].size > 0)
      all_.push_back({lanes[i].link->path()->start_send(lanes[i].tag, bytes_of(parts[i])), 0, lanes[i].channel, false});
  }
}

void Exchange::receive(const std::vector<Lane>& lanes, const std::vector<Part>& parts) {
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    if (parts[i].size == 0) continue;
    all_.push_back(
        {lanes[i].link->path()->start_receive(lanes[i].tag, room_of(parts[i])), parts[i].size, lanes[i].channel, true});
  }
}

void Exchange::check(One& one) {
  if (one.receives && one.request.size() != one.expected)
    wrong_message(one.channel,
                  fmt::format("a message of {} bytes came where {} were to come", one.request.size(), one.expected));
}

void Exchange::wait() {
  for (One& one : all_) {
    while (!one.request.wait_for(kLookAround)) {
      for (One& other : all_) other.request.test();
    }
    check(one);
  }
  all_.clear();
}

bool Exchange::test() {
  for (One& one : all_) {
    if (!one.request.test()) return false;
    check(one);
  }
  return true;
}

std::size_t exchange_unknown(const std::vector<Lane>& to, const std::vector<Part>& parts, const std::vector<Lane>& from,
                             Part buffer) {
  std::vector<Request> sizes;
  for (const Lane& lane : from) sizes.push_back(lane.link->path()->start_receive_any(lane.tag, kSizeBytes));
  for (std::size_t i = 0; i < to.size(); ++i) send_size(to[i], parts[i].size);
  Exchange exchange;
  exchange.send(to, parts);
  std::vector<Part> places;
  std::size_t total = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    sizes[i].wait();
    const std::size_t size = size_from(sizes[i].take().view());
    if (size == ~std::size_t{0}) wrong_message(from[i].channel, "no size came where one was to come");
    if (size > buffer.size - total)
      throw Error(fmt::format("Channel {}: {} bytes are too many", from[i].channel, total + size),
                  fmt::format("the buffer has {}", buffer.size), "give a buffer for the largest message");
    places.push_back({size > 0 ? buffer.data + total : buffer.data, size});
    total += size;
  }
  exchange.receive(from, places);
  exchange.wait();
  return total;
}

void barrier(const Lane& lane) {
  Request reached = lane.link->path()->start_receive_any(lane.tag, 1);
  const std::byte here{1};
  lane.link->path()->start_send(lane.tag, std::span(&here, 1)).wait();
  reached.wait();
}

// ---- passing messages on -------------------------------------------------------------------------------------------

namespace {

// A message that is being passed on.
struct Passing {
  Bytes bytes;
  Request sent;
};

// Messages that a path still reads from when their relay ends: theirs until it lets go of them. Never destroyed,
// because paths may be closed as late as the program's end.
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

void relay(std::span<const RelayLane> lanes, std::size_t limit) {
  using Pause = std::chrono::duration<double, std::micro>;
  constexpr Pause kShortest{10}, kLongest{500};
  std::list<OneWay> ways;
  for (const RelayLane& lane : lanes) {
    ways.emplace_back(*lane.one, lane.one_tag, *lane.other, lane.other_tag, limit);
    ways.emplace_back(*lane.other, lane.other_tag, *lane.one, lane.one_tag, limit);
  }
  Pause pause = kShortest;
  while (true) {
    bool moved = false;
    for (OneWay& way : ways) moved = way.step() || moved;
    if (over(ways)) return;
    pause = moved ? kShortest : std::min(2 * pause, kLongest);
    if (!moved) std::this_thread::sleep_for(pause);
  }
}

}  // namespace maki::wan::mpw
