#include "src/config/key_access.hpp"

namespace maki::detail {

std::string real_text(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string list_text(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ", ") + real_text(value);
  return "[" + text + "]";
}

std::string list_text(const std::vector<std::string>& texts) {
  std::string text;
  for (const std::string& one : texts) text += (text.empty() ? "" : ", ") + quoted(one);
  return "[" + text + "]";
}

std::string shown(const Value& value) {
  struct Show {
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::string& text) const { return quoted(text); }
    std::string operator()(const std::vector<double>& list) const { return list_text(list); }
    std::string operator()(const std::vector<std::string>& list) const { return list_text(list); }
  };
  return std::visit(Show{}, value);
}

void refuse(const Key& key, const Value& value) {
  throw Error(fmt::format("{} does not fit", shown(value)), "", "give " + key.expectation());
}

void check_range(const Key& key, double number, const Value& value) {
  const bool inside =
      std::isfinite(number) && number <= key.max && (key.above_min ? number > key.min : number >= key.min);
  if (!inside) throw Error(fmt::format("{} is out of range", shown(value)), "", "give " + key.expectation());
}

}  // namespace maki::detail
