// Encoding and decoding of all messages: numbers, bytes and texts one after another, little-endian.
//
// A message is described once, by a template `fields(io, message)` that calls io.field() for one member after the
// other. With a ByteWriter as `io` it writes the message, with a ByteReader it reads and checks it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "wan/net/error.hpp"

namespace maki::wan {

static_assert(std::endian::native == std::endian::little && sizeof(double) == 8,
              "numbers travel as they lie in memory");

// A growing byte array.
class ByteWriter {
 public:
  explicit ByteWriter(std::size_t expected = 0) { bytes_.reserve(expected); }

  template <class T>
  void put(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    put_bytes(std::as_bytes(std::span(&value, 1)));
  }
  void put(bool flag) { put(static_cast<std::uint8_t>(flag)); }
  void put_bytes(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void put_characters(std::string_view text) { put_bytes(std::as_bytes(std::span(text))); }
  // The text's length, then the text, truncated to `limit`.
  template <class Length>
  void put_text(std::string_view text, std::size_t limit) {
    text = text.substr(0, limit);
    put(static_cast<Length>(text.size()));
    put_characters(text);
  }
  // The interface of ByteReader. The reader checks limits; here they only truncate.
  template <class T>
  void field(const T& value) {
    put(value);
  }
  template <std::size_t size>
  void field(const std::array<std::byte, size>& bytes) {
    put_bytes(bytes);
  }
  template <class T>
  void field(const T& value, std::type_identity_t<T>, std::type_identity_t<T>, const char*) {
    put(value);
  }
  void field(const std::string& text, std::size_t limit) { put_text<std::uint16_t>(text, limit); }
  // A text in `room` bytes, preceded by its length.
  void padded(const std::string& text, std::size_t room) {
    const std::size_t end = bytes_.size() + 1 + room;
    put_text<std::uint8_t>(text, room);
    fill(end);
  }
  template <class T, class Count, class Each>
  void list(const std::vector<T>& all, Count limit, const char*, Each each) {
    const std::size_t count = std::min<std::size_t>(all.size(), limit);
    put(static_cast<Count>(count));
    for (std::size_t i = 0; i < count; ++i) each(*this, all[i]);
  }

  // Pads with zeros up to `size` bytes.
  void fill(std::size_t size) { bytes_.resize(std::max(size, bytes_.size())); }

  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// A block of fixed size, padded with zeros.
template <std::size_t size>
std::array<std::byte, size> block(std::span<const std::byte> bytes) {
  std::array<std::byte, size> out{};
  std::copy_n(bytes.begin(), std::min(size, bytes.size()), out.begin());
  return out;
}

// Never reads beyond the end. Every call throws ProtocolError for invalid input: "a message is too short", "a message
// makes no sense (reason)" where `what` is "a message" and `wrong` is "a message makes no sense".
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, const char* what, const char* wrong)
      : left_(bytes), what_(what), wrong_(wrong) {}

  [[noreturn]] void fail(const std::string& reason) const { throw ProtocolError(wrong_, reason); }

  std::span<const std::byte> bytes(std::size_t size) {
    if (size > left_.size()) throw ProtocolError(what_ + std::string(" is too short"));
    const auto out = left_.first(size);
    left_ = left_.subspan(size);
    return out;
  }
  template <class T>
  T number() {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    T value;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }
  // At most `limit`; `reason` describes the error above it.
  template <class T>
  T number(T limit, const char* reason) {
    const T value = number<T>();
    if (value > limit) fail(reason);
    return value;
  }
  bool flag() { return number<std::uint8_t>(1, "a flag is neither 0 nor 1") == 1; }
  template <std::size_t size>
  std::array<std::byte, size> array() {
    std::array<std::byte, size> out;
    std::ranges::copy(bytes(size), out.begin());
    return out;
  }
  std::string characters(std::size_t size) {
    const auto raw = bytes(size);
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }
  template <class Length>
  std::string text(std::size_t limit, const char* reason = "a text is too long") {
    const Length length = number<Length>();
    if (length > limit) fail(reason);
    return characters(length);
  }
  template <class T>
  void field(T& value) {
    if constexpr (std::is_same_v<T, bool>)
      value = flag();
    else
      value = number<T>();
  }
  template <std::size_t size>
  void field(std::array<std::byte, size>& out) {
    std::ranges::copy(bytes(size), out.begin());
  }
  // From `low` to `high`; `reason` describes the error otherwise.
  template <class T>
  void field(T& value, std::type_identity_t<T> low, std::type_identity_t<T> high, const char* reason) {
    value = number<T>(high, reason);
    if (!(value >= low)) fail(reason);  // also refuses NaN
  }
  void field(std::string& text, std::size_t limit) { text = this->text<std::uint16_t>(limit); }
  void padded(std::string& text, std::size_t room) {
    text = this->text<std::uint8_t>(room, "a text longer than its field");
    zeros(room - text.size(), "bytes behind the end of a text");
  }
  // The number of elements, then each of them by each(io, one).
  template <class T, class Count, class Each>
  void list(std::vector<T>& all, Count limit, const char* reason, Each each) {
    for (Count left = number<Count>(limit, reason); left > 0; --left) each(*this, all.emplace_back());
  }
  void zeros(std::size_t size, const char* reason) {
    if (std::ranges::any_of(bytes(size), [](std::byte one) { return one != std::byte{0}; })) fail(reason);
  }
  std::size_t left() const { return left_.size(); }
  void end() const {
    if (!left_.empty()) throw ProtocolError(what_ + std::string(" is too long"));
  }

 private:
  std::span<const std::byte> left_;
  const char *what_, *wrong_;
};

// The type of fields()'s message: const for writing.
template <class Io, class Message>
using Of = std::conditional_t<std::is_same_v<Io, ByteWriter>, const Message, Message>;

}  // namespace maki::wan
