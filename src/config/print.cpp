#include "src/config/print.hpp"

#include <fmt/format.h>

#include "src/config/keys.hpp"
#include "src/config/names.hpp"

namespace maki {
namespace {

// "# lpt, pancake" where a key belongs to some kinds only.
std::string kinds_text(const Key& key) {
  std::string text;
  for (const auto& name : kNames<RunKind>) {
    if (key.run_kinds != kAll && (key.run_kinds & bit(name.value)) != 0) text += std::string(name.text) + " runs";
  }
  std::string sets;
  for (const auto& name : kNames<InitialKind>) {
    if (key.initial_kinds == kAll || (key.initial_kinds & bit(name.value)) == 0) continue;
    sets += (sets.empty() ? "" : ", ") + std::string(name.text);
  }
  if (!text.empty() && !sets.empty()) text += ", ";
  return text + sets;
}

std::string plain_unit_text(const Key& key) {
  if (key.type != ValueType::kQuantity) return "";
  if (*key.plain_unit != '\0') return fmt::format("plain numbers are in {}", key.plain_unit);
  return "plain numbers are in the run's unit";
}

}  // namespace

std::string to_toml(const Config& config) {
  std::string text, section;
  for (const Key& key : config_keys()) {
    if (!key.applies_to(config)) continue;
    if (key.section != section) text += fmt::format("{}[{}]\n", section.empty() ? "" : "\n", key.section);
    section = key.section;
    text += fmt::format("{} = {}\n", key.name, key.get(config));
  }
  return text;
}

std::string describe_keys() {
  const Config defaults;
  std::string text =
      "# Every key of a configuration with its default. Lengths, masses and times take a number with a unit in "
      "quotes.\n"
      "# In isolated runs plain numbers are in the run's own units.\n";
  std::string section;
  for (const Key& key : config_keys()) {
    if (key.section != section) text += fmt::format("\n[{}]\n", key.section);
    section = key.section;
    text += fmt::format("# {}\n", key.meaning);
    text += fmt::format("#   {}", key.expectation());
    for (const std::string& part : {plain_unit_text(key), kinds_text(key)}) {
      if (!part.empty()) text += "; " + part;
    }
    const bool commented = !key.applies_to(defaults);  // so that the text as a whole stays a valid configuration
    text += fmt::format("\n{}{} = {}\n", commented ? "# " : "", key.name, key.get(defaults));
  }
  return text;
}

}  // namespace maki
