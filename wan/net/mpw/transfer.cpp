#include "wan/net/mpw/transfer.hpp"

#include <fmt/format.h>

#include "wan/net/byte_codec.hpp"

namespace maki::wan::mpw {
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

void check_count(std::size_t lanes, std::size_t parts) {
  if (lanes != parts) throw Error(fmt::format("{} parts for {} channels", parts, lanes));
}

std::size_t size_from(std::span<const std::byte> bytes) {
  return bytes.size() == kSizeBytes ? ByteReader(bytes, "", "").number<std::uint64_t>() : ~std::size_t{0};
}

void send_size(const Lane& lane, std::size_t size) {
  ByteWriter out;
  out.put(std::uint64_t{size});
  lane.link->start_send(lane.tag, out.bytes()).wait();  // so short a message is copied
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
  check_count(lanes.size(), parts.size());
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    if (parts[i].size > 0)
      all_.push_back({lanes[i].link->start_send(lanes[i].tag, bytes_of(parts[i])), 0, lanes[i].channel, false});
  }
}

void Exchange::receive(const std::vector<Lane>& lanes, const std::vector<Part>& parts) {
  check_count(lanes.size(), parts.size());
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    if (parts[i].size == 0) continue;
    all_.push_back(
        {lanes[i].link->start_receive(lanes[i].tag, room_of(parts[i])), parts[i].size, lanes[i].channel, true});
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
  check_count(to.size(), parts.size());
  std::vector<Request> sizes;
  for (const Lane& lane : from) sizes.push_back(lane.link->start_receive_any(lane.tag, kSizeBytes));
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
  Request reached = lane.link->start_receive_any(lane.tag, 1);
  const std::byte here{1};
  lane.link->start_send(lane.tag, std::span(&here, 1)).wait();
  reached.wait();
}

}  // namespace maki::wan::mpw
