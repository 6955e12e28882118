// Numbers and texts in a message: written into a buffer that grows, read with every length checked.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "wan/net/path.hpp"

namespace maki::wan::copy {

inline Bytes make_bytes(std::size_t size) { return {std::make_unique_for_overwrite<std::byte[]>(size), size}; }

// All machines that Maki runs on are little-endian, as the messages are.
class FieldWriter {
 public:
  template <class T>
  void put(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    append(&value, sizeof value);
  }
  void put_bytes(std::span<const std::byte> bytes) { append(bytes.data(), bytes.size()); }
  // Cut where it is longer than `limit`.
  void put_text(const std::string& text, std::size_t limit) {
    const std::size_t length = std::min(text.size(), limit);
    put(static_cast<std::uint16_t>(length));
    append(text.data(), length);
  }
  Bytes message() const {
    Bytes out = make_bytes(bytes_.size());
    if (!bytes_.empty()) std::memcpy(out.data.get(), bytes_.data(), bytes_.size());
    return out;
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void append(const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  std::vector<std::byte> bytes_;
};

class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> message) : left_(message) {}
  std::span<const std::byte> bytes(std::size_t size) {
    if (size > left_.size()) throw ProtocolError("a message of the copy is too short");
    const auto out = left_.first(size);
    left_ = left_.subspan(size);
    return out;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }
  // A number of at most `limit`; `what` names it in the error.
  template <class T>
  T number(T limit, const char* what) {
    const T value = number<T>();
    if (value > limit) throw ProtocolError("a message of the copy makes no sense", what);
    return value;
  }
  bool flag() { return number<std::uint8_t>(1, "a flag is neither 0 nor 1") == 1; }
  std::string text(std::size_t limit) {
    const std::size_t length = number<std::uint16_t>(static_cast<std::uint16_t>(limit), "a text is too long");
    const auto raw = bytes(length);
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }
  std::size_t left() const { return left_.size(); }
  void end() const {
    if (!left_.empty()) throw ProtocolError("a message of the copy is too long");
  }

 private:
  std::span<const std::byte> left_;
};

}  // namespace maki::wan::copy
