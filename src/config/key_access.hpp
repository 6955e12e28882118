// Setting a field of Config from a Value and writing it as TOML: one overload for each type of field.
#pragma once

#include <fmt/format.h>

#include <type_traits>

#include "kernels/error.hpp"
#include "src/config/keys.hpp"
#include "wan/net/settings.hpp"

namespace maki::detail {

using wan::quoted;
std::string real_text(double value);  // always with a point or an exponent, so that it stays a float
std::string list_text(const std::vector<double>& values);
std::string list_text(const std::vector<std::string>& texts);
// "'abc'", "12", "a list": a value as messages show it.
std::string shown(const Value& value);
// Throws Error with the value and the key's expected value.
[[noreturn]] void refuse(const Key& key, const Value& value);
void check_range(const Key& key, double number, const Value& value);
// The T in a value; refuses any other.
template <class T>
const T& held(const Key& key, const Value& value) {
  if (const auto* found = std::get_if<T>(&value)) return *found;
  refuse(key, value);
}

template <class T>
struct FieldTraits {  // enumerations
  static constexpr ValueType type = ValueType::kChoice;
  static T read(const Key& key, const Value& value) {
    const auto& word = held<std::string>(key, value);
    for (const auto& name : kNames<T>) {
      if (name.text == word) return name.value;
    }
    refuse(key, value);
  }
  static std::string write(T value) { return quoted(std::string(name_of(value))); }
};

template <>
struct FieldTraits<bool> {
  static constexpr ValueType type = ValueType::kSwitch;
  static bool read(const Key& key, const Value& value) { return held<bool>(key, value); }
  static std::string write(bool value) { return value ? "true" : "false"; }
};

template <>
struct FieldTraits<std::int64_t> {
  static constexpr ValueType type = ValueType::kInteger;
  static std::int64_t read(const Key& key, const Value& value) {
    const auto number = held<std::int64_t>(key, value);
    check_range(key, static_cast<double>(number), value);
    return number;
  }
  static std::string write(std::int64_t value) { return fmt::format("{}", value); }
};

template <>
struct FieldTraits<double> {
  static constexpr ValueType type = ValueType::kReal;
  static double read(const Key& key, const Value& value) {
    const auto* integer = std::get_if<std::int64_t>(&value);
    const double number = integer ? static_cast<double>(*integer) : held<double>(key, value);
    check_range(key, number, value);
    return number;
  }
  static std::string write(double value) { return real_text(value); }
};

template <>
struct FieldTraits<std::string> {
  static constexpr ValueType type = ValueType::kText;
  static std::string read(const Key& key, const Value& value) { return held<std::string>(key, value); }
  static std::string write(const std::string& value) { return quoted(value); }
};

template <>
struct FieldTraits<Quantity> {
  static constexpr ValueType type = ValueType::kQuantity;
  static Quantity read(const Key& key, const Value& value) {
    Quantity quantity;
    if (const auto* text = std::get_if<std::string>(&value)) {
      quantity = parse_quantity(*text, key.dimension);
      check_range(key, quantity.value, value);
    } else {
      quantity.value = FieldTraits<double>::read(key, value);
    }
    return quantity;
  }
  static std::string write(const Quantity& value) {
    return value.unit.empty() ? real_text(value.value) : quoted(to_string(value));
  }
};

template <>
struct FieldTraits<std::vector<double>> {
  static constexpr ValueType type = ValueType::kList;
  static std::vector<double> read(const Key& key, const Value& value) {
    const auto& list = held<std::vector<double>>(key, value);
    for (const double number : list) check_range(key, number, number);
    return list;
  }
  static std::string write(const std::vector<double>& value) { return list_text(value); }
};

template <>
struct FieldTraits<std::vector<std::string>> {
  static constexpr ValueType type = ValueType::kTexts;
  static std::vector<std::string> read(const Key& key, const Value& value) {
    const auto* none = std::get_if<std::vector<double>>(&value);  // an empty list is one of anything
    if (none != nullptr && none->empty()) return {};
    return held<std::vector<std::string>>(key, value);
  }
  static std::string write(const std::vector<std::string>& value) { return list_text(value); }
};

template <class T>
struct FieldTraits<std::optional<T>> {
  static constexpr ValueType type = FieldTraits<T>::type;
  static std::optional<T> read(const Key& key, const Value& value) {
    const auto* word = std::get_if<std::string>(&value);
    if (word != nullptr && *word == "auto") return std::nullopt;
    return FieldTraits<T>::read(key, value);
  }
  static std::string write(const std::optional<T>& value) {
    return value ? FieldTraits<T>::write(*value) : quoted("auto");
  }
};

template <class T>
struct Plain {
  using type = T;
};
template <class T>
struct Plain<std::optional<T>> {
  using type = T;
};

// `Access` is a captureless lambda from (const) Config& to (const) field&.
template <class Access>
Key make_key(const char* path, Access access) {
  using Field = std::remove_cvref_t<decltype(access(std::declval<Config&>()))>;
  using T = typename Plain<Field>::type;
  Key key;
  const std::string text = path;
  key.section = text.substr(0, text.find('.'));
  key.name = text.substr(text.find('.') + 1);
  key.type = FieldTraits<Field>::type;
  key.has_auto = !std::is_same_v<Field, T>;
  if constexpr (std::is_enum_v<T>) {
    for (const auto& name : kNames<T>) key.choices.emplace_back(name.text);
  }
  key.set = [](const Key& self, Config& config, const Value& value) {
    Access{}(config) = FieldTraits<Field>::read(self, value);
  };
  key.get = [](const Config& config) { return FieldTraits<Field>::write(Access{}(config)); };
  return key;
}

}  // namespace maki::detail
