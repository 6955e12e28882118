// Short messages between the two ends of a measurement: a word and values by name, "take bytes=64000000 count=3".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "wan/net/error.hpp"

namespace maki::wan {

inline constexpr std::size_t kMaxWords = 4096;  // bytes of one message

class Words {
 public:
  explicit Words(std::string order = "") : order_(std::move(order)) {}
  // Throws ProtocolError for what text() cannot have made.
  static Words parse(std::span<const std::byte> bytes);

  const std::string& order() const { return order_; }
  // Names and values hold no spaces and no '='; an empty value is allowed.
  Words& set(const std::string& name, std::string_view value);
  Words& set(const std::string& name, std::uint64_t value);
  Words& set(const std::string& name, double value);

  // Throw ProtocolError where it is missing or no number in the range.
  std::string text(const std::string& name) const;
  std::uint64_t integer(const std::string& name, std::uint64_t highest) const;
  double real(const std::string& name, double highest) const;  // 0 or more

  std::string text() const;

 private:
  std::string order_;
  std::map<std::string, std::string> values_;
};

}  // namespace maki::wan
