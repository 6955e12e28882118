// Setting a field of Config from a Value and writing it as TOML: one overload for each type of field.
#pragma once

#include <fmt/format.h>

#include <type_traits>

#include "kernels/error.hpp"
#include "src/config/keys.hpp"
#include "wan/net/settings.hpp"

namespace maki::detail {

using wan::quoted;
// "'abc'", "12", "a list": a value as messages show it.
std::string shown(const Value& value);
// Throws Error with the value and the key's expected value.
[[noreturn]] void refuse(const Key& key, const Value& value);
void check_range(const Key& key, double number, const Value& value);
// The T in a value; refuse() where it holds another type.
template <class T>
const T& held(const Key& key, const Value& value) {
  if (const auto* found = std::get_if<T>(&value)) return *found;
  refuse(key, value);
}

// read(): sets a field, or refuses the value.
inline void read(bool& to, const Key& key, const Value& value) { to = held<bool>(key, value); }
inline void read(std::int64_t& to, const Key& key, const Value& value) {
  const auto number = held<std::int64_t>(key, value);
  check_range(key, static_cast<double>(number), value);
  to = number;
}
inline void read(double& to, const Key& key, const Value& value) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  const double number = integer ? static_cast<double>(*integer) : held<double>(key, value);
  check_range(key, number, value);
  to = number;
}
inline void read(std::string& to, const Key& key, const Value& value) { to = held<std::string>(key, value); }
inline void read(Quantity& to, const Key& key, const Value& value) {
  Quantity quantity;
  if (const auto* text = std::get_if<std::string>(&value)) {
    const bool names_unit = key.section == "units" && find_unit(*text, key.dimension) != nullptr;  // "kpc": one kpc
    quantity = names_unit ? Quantity{1, *text} : parse_quantity(*text, key.dimension);
    check_range(key, quantity.value, value);
  } else {
    read(quantity.value, key, value);
  }
  to = quantity;
}
inline void read(std::vector<double>& to, const Key& key, const Value& value) {
  const auto& list = held<std::vector<double>>(key, value);
  for (const double number : list) check_range(key, number, number);
  to = list;
}
inline void read(std::vector<Quantity>& to, const Key& key, const Value& value) {
  to.clear();
  if (const auto* numbers = std::get_if<std::vector<double>>(&value))
    for (const double number : *numbers) read(to.emplace_back(), key, number);
  else
    for (const std::string& text : held<std::vector<std::string>>(key, value)) read(to.emplace_back(), key, text);
}
inline void read(std::vector<std::string>& to, const Key& key, const Value& value) {
  const auto* none = std::get_if<std::vector<double>>(&value);  // an empty list is one of anything
  to = none && none->empty() ? std::vector<std::string>() : held<std::vector<std::string>>(key, value);
}
template <class E>  // an enumeration
void read(E& to, const Key& key, const Value& value) {
  const auto& word = held<std::string>(key, value);
  for (const auto& name : kNames<E>) {
    if (name.text == word) return void(to = name.value);
  }
  refuse(key, value);
}
template <class T>
void read(std::optional<T>& to, const Key& key, const Value& value) {
  const auto* word = std::get_if<std::string>(&value);
  if (word != nullptr && *word == "auto") return to.reset();
  T given{};
  read(given, key, value);
  to = given;
}

// write(): the TOML of a field.
inline std::string write(bool value) { return value ? "true" : "false"; }
inline std::string write(std::int64_t value) { return fmt::format("{}", value); }
std::string write(double value);  // always with a point or an exponent, so that it stays a float
inline std::string write(const std::string& value) { return quoted(value); }
inline std::string write(const Quantity& value) {
  return value.unit.empty() ? write(value.value) : quoted(to_string(value));
}
template <class T>
std::string write(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ", ") + write(value);
  return "[" + text + "]";
}
template <class E>  // an enumeration
std::string write(E value) {
  return quoted(std::string(name_of(value)));
}
template <class T>
std::string write(const std::optional<T>& value) {
  return value ? write(*value) : quoted("auto");
}

template <class T>
struct Plain {
  using type = T;
};
template <class T>
struct Plain<std::optional<T>> {
  using type = T;
};

template <class T>
constexpr ValueType type_of() {
  if (std::is_same_v<T, bool>) return ValueType::kSwitch;
  if (std::is_same_v<T, std::int64_t>) return ValueType::kInteger;
  if (std::is_same_v<T, double>) return ValueType::kReal;
  if (std::is_same_v<T, std::string>) return ValueType::kText;
  if (std::is_same_v<T, Quantity>) return ValueType::kQuantity;
  if (std::is_same_v<T, std::vector<double>>) return ValueType::kList;
  if (std::is_same_v<T, std::vector<std::string>>) return ValueType::kTexts;
  if (std::is_same_v<T, std::vector<Quantity>>) return ValueType::kQuantities;
  return ValueType::kChoice;
}

// `Access` is a captureless lambda from (const) Config& to (const) field&.
template <class Access>
Key make_key(const char* path, Access access) {
  using Field = std::remove_cvref_t<decltype(access(std::declval<Config&>()))>;
  using T = typename Plain<Field>::type;
  Key key;
  const std::string text = path;
  key.section = text.substr(0, text.find('.'));
  key.name = text.substr(text.find('.') + 1);
  key.type = type_of<T>();
  key.has_auto = !std::is_same_v<Field, T>;
  if constexpr (std::is_enum_v<T>) {
    for (const auto& name : kNames<T>) key.choices.emplace_back(name.text);
  }
  key.set = [](const Key& self, Config& config, const Value& value) { read(Access{}(config), self, value); };
  key.get = [](const Config& config) { return write(Access{}(config)); };
  return key;
}

}  // namespace maki::detail
