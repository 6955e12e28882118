#include "wan/net/tune/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace maki::wan {
namespace {

bool only_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f && c != '='; });
}

template <class Number>
Number number_of(const std::string& name, const std::string& text, Number highest) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || rest != end || !(number >= 0) || number > highest)
    throw ProtocolError(fmt::format("the peer's measurement said {}={}", name, text.substr(0, 40)), "out of range");
  return number;
}

}  // namespace

Words Words::parse(std::span<const std::byte> bytes) {
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto next = [&rest] {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    return word;
  };
  if (bytes.size() > kMaxWords) throw ProtocolError("the peer's measurement sent too long an order");
  Words words{std::string(next())};
  if (words.order_.empty() || !only_printable(words.order_))
    throw ProtocolError("the peer's measurement sent no order", "", "is the other side 'maki wan bench' too?");
  while (!rest.empty()) {
    const std::string_view word = next();
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos || !only_printable(word.substr(0, equals)) ||
        !only_printable(word.substr(equals + 1)))
      throw ProtocolError("the peer's measurement sent an order that cannot be read");
    words.values_[std::string(word.substr(0, equals))] = word.substr(equals + 1);
  }
  return words;
}

Words& Words::set(const std::string& name, std::string_view value) {
  values_[name] = value;
  return *this;
}

Words& Words::set(const std::string& name, std::uint64_t value) { return set(name, fmt::format("{}", value)); }
Words& Words::set(const std::string& name, double value) { return set(name, fmt::format("{}", value)); }

std::string Words::text(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    throw ProtocolError(fmt::format("the peer's measurement left out '{}' of '{}'", name, order_), "",
                        "use the same version on both sides");
  }
  return found->second;
}

std::uint64_t Words::integer(const std::string& name, std::uint64_t highest) const {
  return number_of<std::uint64_t>(name, text(name), highest);
}

double Words::real(const std::string& name, double highest) const {
  return number_of<double>(name, text(name), highest);
}

std::string Words::text() const {
  std::string all = order_;
  for (const auto& [name, value] : values_) all += ' ' + name + '=' + value;
  return all;
}

}  // namespace maki::wan
