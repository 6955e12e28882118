// JSON as text: the only writer, for an object on one line, and a reader of one member of such a line, which may be
// incomplete. Boost reads whole lines (property_tree.hpp).
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace maki {

inline std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

inline std::string json_array(const std::vector<std::string>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

class JsonObject {
 public:
  // `value` is JSON text: a formatted number, an array, an object.
  JsonObject& raw(std::string_view key, std::string_view value) {
    text_ += fmt::format("{}{}: {}", text_.empty() ? "" : ", ", json_string(key), value);
    return *this;
  }
  // Numbers that are not finite become null.
  template <class T>
  JsonObject& add(std::string_view key, const T& value) {
    if constexpr (std::floating_point<T>)
      return raw(key, std::isfinite(value) ? fmt::format("{:.9g}", value) : "null");
    else if constexpr (std::integral<T>)
      return raw(key, fmt::format("{}", value));
    else if constexpr (std::same_as<T, JsonObject>)
      return raw(key, value.text());
    else
      return raw(key, json_string(value));
  }
  std::string text() const { return '{' + text_ + '}'; }

 private:
  std::string text_;
};

// The text of the first member `key` in a line of JsonObject, for a string without its quotes; none where it is
// missing.
inline std::optional<std::string> json_member(const std::string& line, std::string_view key) {
  const std::string mark = json_string(key) + ": ";
  std::size_t at = line.find(mark);
  if (at == std::string::npos) return {};
  at += mark.size();
  const bool is_string = at < line.size() && line[at] == '"';
  if (is_string) ++at;
  return line.substr(at, line.find_first_of(is_string ? "\"" : ",}", at) - at);
}

}  // namespace maki
