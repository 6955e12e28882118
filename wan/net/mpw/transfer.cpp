#include "wan/net/mpw/table.hpp"

#include <fmt/format.h>

#include <deque>
#include <exception>
#include <set>
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

constexpr double kLookAround = 0.1;  // seconds between checks whether another one has failed
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
  lane.link->path()->start_send(lane.tag, out.bytes()).wait();  // a short message is copied
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
      all_.push_back({lanes[i].link->path()->start_send(lanes[i].tag, bytes_of(parts[i])), 0, lanes[i].channel});
  }
}

void Exchange::receive(const std::vector<Lane>& lanes, const std::vector<Part>& parts) {
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    if (parts[i].size == 0) continue;
    all_.push_back(
        {lanes[i].link->path()->start_receive(lanes[i].tag, room_of(parts[i])), parts[i].size, lanes[i].channel});
  }
}

void Exchange::check(One& one) {
  if (one.expected > 0 && one.request.size() != one.expected)
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

// The paths of a relay that have ended, and the reason if that was not orderly.
class Ending {
 public:
  void note(const Path* path, const std::exception_ptr& error) {
    const std::lock_guard lock(mutex_);
    paths_.insert(path);
    if (!error_) error_ = error;
  }
  // All that an ended path has received is still passed on.
  bool stops(const Path& from) {
    const std::lock_guard lock(mutex_);
    return !paths_.empty() && !paths_.contains(&from);
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::set<const Path*> paths_;
  std::exception_ptr error_;
};

// Passes on the messages of one tag, until a path of the relay ends.
void pass_on(Path& from, Tag from_tag, Path& to, Tag to_tag, std::size_t limit, Ending& ending) {
  constexpr std::size_t kInFlight = 4;  // messages
  std::deque<Request> going;
  const auto done = [&](Request& request) {
    while (!request.wait_for(kLookAround))
      if (ending.stops(from)) return false;
    return true;
  };
  const Path* used = &from;
  try {
    for (;;) {
      used = &from;
      Request coming = from.start_receive_any(from_tag, limit);
      if (!done(coming)) return;
      used = &to;
      going.push_back(to.start_send(to_tag, coming.take()));
      if (going.size() < kInFlight) continue;
      if (!done(going.front())) return;
      going.pop_front();
    }
  } catch (const PathError& error) {
    const bool orderly = error.seconds_down() == 0 && error.bytes_outstanding() == 0;
    ending.note(used, orderly ? nullptr : std::current_exception());
  } catch (...) {
    ending.note(nullptr, std::current_exception());
  }
}

}  // namespace

void relay(const std::vector<Lane>& one, const std::vector<Lane>& other, std::size_t limit) {
  Ending ending;
  std::vector<std::jthread> ways;
  const auto begin = [&](const Lane& from, const Lane& to) {
    ways.emplace_back([=, source = from.link->path(), target = to.link->path(), &ending] {
      pass_on(*source, from.tag, *target, to.tag, limit, ending);
    });
  };
  try {
    for (std::size_t i = 0; i < one.size(); ++i) {
      begin(one[i], other[i]);
      begin(other[i], one[i]);
    }
  } catch (...) {
    ending.note(nullptr, std::current_exception());
  }
  ways.clear();
  ending.rethrow();
}

}  // namespace maki::wan::mpw
