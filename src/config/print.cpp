#include "src/config/parse.hpp"

#include <fmt/format.h>

#include "src/config/keys.hpp"
#include "src/config/presets.hpp"
#include "src/config/site_tables.hpp"

namespace maki {
namespace {

// "# lpt, pancake" where a key belongs only to some kinds.
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

// "fast 0.6, standard 0.5, precise 0.3" where the preset decides.
std::string preset_text(const Key& key) {
  constexpr std::uint64_t kParticles = 128 * 128 * 128;
  std::string text;
  for (const auto& preset : kNames<Preset>) {
    Config config;
    config.run.preset = preset.value;
    const std::string before = key.get(config);
    resolve_presets(config, kParticles);
    const std::string after = key.get(config);
    if (after == before) return "";
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", preset.text, after);
  }
  return key.name == "mesh" ? text + " for 128^3 particles" : text;
}

// [sites] is printed only for runs over several sites.
bool is_printed(const Key& key, const Config& config) {
  return key.applies_to(config) && !key.hidden && (key.section != "sites" || !config.sites.ring.empty());
}

}  // namespace

std::string to_toml(const Config& config) {
  std::string text, section;
  for (const Key& key : config_keys()) {
    if (!is_printed(key, config)) continue;
    if (key.section != section) text += fmt::format("{}[{}]\n", section.empty() ? "" : "\n", key.section);
    section = key.section;
    text += fmt::format("{} = {}\n", key.name, key.get(config));
  }
  return text + site_tables_text(config);
}

std::vector<std::string> chosen_lines(const Config& config) {
  const Config defaults;
  std::vector<std::string> lines;
  for (const Key& key : config_keys())
    if (!key.hidden && key.get(config) != key.get(defaults))
      lines.push_back(fmt::format("{} = {}", key.path(), key.get(config)));
  return lines;
}

std::vector<std::string> lines_of_all_sites(const Config& config) {
  std::vector<std::string> lines;
  for (const Key& key : config_keys())
    if (is_printed(key, config) && !key.of_site) lines.push_back(fmt::format("{} = {}", key.path(), key.get(config)));
  return lines;
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
    for (const std::string& part : {plain_unit_text(key), kinds_text(key), preset_text(key)}) {
      if (!part.empty()) text += "; " + part;
    }
    const bool commented = !key.applies_to(defaults);  // so that the text as a whole stays a valid configuration
    text += fmt::format("\n{}{} = {}\n", commented ? "# " : "", key.name, key.get(defaults));
  }
  return text + describe_site_tables();
}

}  // namespace maki
