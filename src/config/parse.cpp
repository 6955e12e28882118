#include "src/config/parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <sstream>
#include <utility>

#include "kernels/error.hpp"
#include "src/config/keys.hpp"
#include "src/config/resolve.hpp"
#include "src/config/site_tables.hpp"
#include "src/config/text.hpp"

namespace maki {
namespace {

// The key for a parameter of GADGET or SWIFT; null for other words. Without case and underscores, up to a number.
const char* key_for_parameter(const std::string& plain) {
  static constexpr std::pair<std::string_view, const char*> kParameters[] = {
      {"aend", "time.end_redshift"},
      {"boxsize", "box.size"},
      {"cputimebetrestartfile", "run.restart_interval"},
      {"deltahours", "run.restart_interval"},
      {"dtmax", "time.max_dlna"},
      {"errtolforceacc", "gravity.error"},
      {"errtolintaccuracy", "time.eta"},
      {"errtoltheta", "gravity.theta"},
      {"filename", "initial.file"},
      {"initcondfile", "initial.file"},
      {"maxphysicaldmsoftening", "gravity.max_physical_softening"},
      {"maxruntime", "run.time_limit"},
      {"maxsizetimestep", "time.max_dlna"},
      {"meshsidelength", "gravity.mesh"},
      {"numfilespersnapshot", "output.files"},
      {"outputdir", "run.output_directory"},
      {"outputlist", "output.list"},
      {"pmgrid", "gravity.mesh"},
      {"softeningcomoving", "gravity.softening"},
      {"softeningmaxphys", "gravity.max_physical_softening"},
      {"timebegin", "initial.redshift"},
      {"timebetsnapshot", "output.redshifts"},
      {"timelimitcpu", "run.time_limit"},
      {"timemax", "time.end_redshift"},
  };
  const auto begins = [&](const auto& parameter) { return plain.starts_with(parameter.first); };
  const auto* found = std::ranges::find_if(kParameters, begins);
  return found == std::end(kParameters) ? nullptr : found->second;
}

// The known key nearest to `word` by edit distance, as "section.key"; letter case and underscores do not count.
// "" where none is near.
std::string nearest_key(const std::string& word) {
  const bool with_section = word.find('.') != std::string::npos;
  const std::string wanted = plain_word(word);
  const std::string wanted_name = plain_word(word.substr(word.find('.') + 1));
  if (const char* key = key_for_parameter(wanted_name)) return key;
  std::string best;
  std::size_t smallest = wanted_name.size() + 3;  // a name with more than half of its letters wrong means another thing
  for (const Key& key : config_keys()) {
    // The right name in a wrong section counts as nearer than another name in the right section.
    const std::size_t by_name = edit_distance(wanted_name, plain_word(key.name)) * 2 + (with_section ? 1 : 0);
    const std::size_t by_path = edit_distance(wanted, plain_word(key.path())) * 2;
    const std::size_t distance = with_section ? std::min(by_name, by_path) : by_name;
    if (distance < smallest) smallest = distance, best = key.path();
  }
  return best;
}

// The place of a value, which begins messages: "run.toml line 12: gravity.theta" or "command line: gravity.theta=7".
struct Place {
  std::string where;
  std::string key;
  bool overrides = false;  // it was not given in the file
};

[[noreturn]] void unknown_key(const Place& place) {
  if (std::ranges::find(config_keys(), place.key, &Key::section) != config_keys().end())
    throw Error(fmt::format("{}: '{}' is a section of keys", place.where, place.key), "",
                "give one of its keys ('maki config' lists all)");
  static constexpr std::array kBackground{"mnu", "omegar", "omeganu", "neff", "nur", "tcmb"};
  if (std::ranges::find(kBackground, plain_word(place.key.substr(place.key.find('.') + 1))) != kBackground.end())
    throw Error(
        fmt::format("{}: there is no key '{}'", place.where, place.key),
        "the universe here has matter, dark energy (w0, wa), photons and massless neutrinos (omega_radiation) and "
        "curvature",
        "take it out, or give cosmology.omega_radiation");
  const std::string nearest = nearest_key(place.key);
  throw Error(fmt::format("{}: there is no key '{}'", place.where, place.key), "",
              (nearest.empty() ? "" : fmt::format("did you mean '{}'? ", nearest)) + "('maki config' lists all)");
}

class Reader {
 public:
  Config config;

  void read_table(const toml::table& table, const std::string& name) {
    for (const auto& [section, node] : table) {
      const toml::table* keys = node.as_table();
      if (keys == nullptr) unknown_key({place_of(name, node), std::string(section.str())});
      for (const auto& [key, value] : *keys) {
        const std::string path = std::string(section.str()) + "." + std::string(key.str());
        const Place place{place_of(name, value), path};
        if (section.str() == "sites" && value.is_table()) {
          read_site_table(*value.as_table(), name, std::string(key.str()));
          continue;
        }
        set(known_key(place), value_of(value, place), place);
      }
    }
  }

  void read_override(const std::string& text, const std::string& from) {
    const auto equals = text.find('=');
    const Place place{from, text.substr(0, equals), true};
    if (equals == std::string::npos) {
      throw Error(fmt::format("{}: '{}' is no setting", from, text), "", "give section.key=value");
    }
    if (!is_utf8(text))
      throw Error(fmt::format("{}: '{}' is not UTF-8", from, text), "files of a run hold its configuration, in UTF-8",
                  "give the file or directory another name");
    if (place.key.starts_with("sites.") && place.key.find('.', 6) != std::string::npos)
      return set_site(place, override_value(ValueType::kText, text.substr(equals + 1), place));
    const Key& key = place.key.find('.') == std::string::npos ? short_key(place) : known_key(place);
    set(key, override_value(key.type, text.substr(equals + 1), place), place);
  }

  // Refuses given keys without a meaning for this kind of run, which would be ignored silently. If the command line
  // changes the kind, keys of the file may lose their meaning: such a file is accepted, for example to continue a run.
  void check_applicable() const {
    for (const auto& [key, place] : given_) {
      if (key->applies_to(config) || (other_kind_ && !place.overrides)) continue;
      const bool by_run = (key->run_kinds & bit(config.run.kind)) == 0;
      throw Error(fmt::format("{}: {} has no meaning here", place.where, key->path()),
                  by_run ? fmt::format("run.kind is \"{}\"", name_of(config.run.kind))
                         : fmt::format("initial.kind is \"{}\"", name_of(config.initial.kind)),
                  "take it out, or change the kind");
    }
  }

  // Reads output.list into the list of outputs of this kind of run. A list or file of the command line replaces those of
  // the configuration's file.
  void read_output_list() {
    const std::string file = std::exchange(config.output.list, "");
    if (file.empty()) return;
    const Key& list = find_key("output.list");
    const Key& numbers = find_key(config.run.kind == RunKind::kCosmology ? "output.redshifts" : "output.times");
    const auto given = [&](const Key& key, bool overrides) {
      return std::ranges::any_of(given_, [&](const auto& one) {
        return one.first == &key && one.second.overrides == overrides;
      });
    };
    const bool by_override = given(list, true);
    if (given(numbers, by_override))
      throw Error(fmt::format("output.list and {} are both given", numbers.path()), "they say the same",
                  "leave one of them out");
    if (given(numbers, true)) return;
    numbers.set(numbers, config, read_output_times(file, numbers));
  }

 private:
  // Checks each number as one of the key.
  std::vector<double> read_output_times(const std::string& file, const Key& key) {
    const std::string text = read_text(file, "give the path of a list of outputs (output.list)");
    const bool comoving = config.run.kind == RunKind::kCosmology;
    const bool redshifts = comoving && text.starts_with("# Redshift");  // as SWIFT's lists say
    const bool factors = comoving && !redshifts;
    std::istringstream lines(text);
    std::vector<double> times;
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      std::istringstream words(line.substr(0, line.find('#')));
      double time = 0, flag = 1;
      if ((words >> std::ws).eof()) continue;
      if (!(words >> time) || (!(words >> std::ws).eof() && !(words >> flag >> std::ws).eof()) ||
          (factors && time <= 0)) {
        const char* const kind = factors ? "scale factor" : redshifts ? "redshift" : "time";
        throw Error(fmt::format("{} line {}: '{}' is no output", file, number, line), "",
                    fmt::format("give a {}, and 0 or 1 behind it", kind));
      }
      if (flag == 0) continue;
      times.push_back(factors ? 1 / time - 1 : time);
      try {
        key.set(key, config, std::vector<double>{times.back()});
      } catch (const Error& error) {
        const std::string from = factors ? fmt::format("scale factor {:g}, redshift ", time) : "";
        throw Error(fmt::format("{} line {}: {}{}", file, number, from, error.what()));
      }
    }
    return times;
  }

  static const Key& known_key(const Place& place) {
    for (const Key& key : config_keys()) {
      if (key.path() == place.key) return key;
    }
    unknown_key(place);
  }

  static const Key& short_key(const Place& place) {
    const Key* found = nullptr;
    for (const Key& key : config_keys()) {
      if (key.name != place.key) continue;
      if (found != nullptr) {
        throw Error(fmt::format("{}: '{}' can be {} or {}", place.where, place.key, found->path(), key.path()), "",
                    "give the section too");
      }
      found = &key;
    }
    if (found == nullptr) unknown_key(place);
    return *found;
  }

  void set(const Key& key, const Value& value, const Place& place) {
    const std::string before = key.get(config);
    try {
      key.set(key, config, value);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {} = {}", place.where, key.path(), error.what()));
    }
    other_kind_ = other_kind_ || (place.overrides && key.name == "kind" && key.get(config) != before);
    given_.emplace_back(&key, place);
  }

  // [sites.NAME], [sites.path], or [sites.NAME.path] within the first.
  void read_site_table(const toml::table& table, const std::string& name, const std::string& site) {
    for (const auto& [key, value] : table) {
      const Place place{place_of(name, value), "sites." + site + "." + std::string(key.str())};
      const toml::table* const inner = value.as_table();
      if (inner == nullptr) {
        set_site(place, value_of(value, place));
      } else if (key.str() == "path" && site != "path") {
        read_site_table(*inner, name, site + ".path");
      } else {
        throw Error(fmt::format("{}: there is no table [{}]", place.where, place.key), "",
                    "[sites.NAME.path] is the only one within that of a site");
      }
    }
  }

  // `place.key` is sites.TABLE.KEY, or sites.NAME.path.KEY.
  void set_site(const Place& place, const Value& value) {
    const std::size_t dot = place.key.find('.', 6);
    at_place(fmt::format("{}: {}", place.where, place.key),
             [&] { set_site_value(config, place.key.substr(6, dot - 6), place.key.substr(dot + 1), value); });
  }

  static Value value_of(const toml::node& node, const Place& place) {
    if (const auto* flag = node.as_boolean()) return flag->get();
    if (const auto* integer = node.as_integer()) return integer->get();
    if (const auto* real = node.as_floating_point()) return real->get();
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* array = node.as_array()) {
      std::vector<std::string> texts;
      std::vector<double> numbers;
      for (const toml::node& element : *array) {
        const auto* text = element.as_string();
        const auto number = element.value<double>();
        if (!text && !number)
          throw Error(fmt::format("{}: {} holds something other than numbers or texts", place.where, place.key));
        texts.push_back(text ? text->get() : fmt::format("{}", *number));
        if (!text) numbers.push_back(*number);
      }
      if (numbers.size() == texts.size()) return numbers;
      return texts;
    }
    throw Error(fmt::format("{}: {} is a table or a date", place.where, place.key), "",
                "give a number, text or a list");
  }

  // A value on a command line is TOML where possible, else bare text, as shells remove quotes.
  static Value override_value(ValueType type, const std::string& text, const Place& place) {
    const bool of_words = type == ValueType::kTexts || type == ValueType::kQuantities;
    if (of_words && !text.starts_with('[')) return words_between_commas(text);
    if (type == ValueType::kText && !text.starts_with('"') && !text.starts_with('\'')) return text;
    const bool bare_list = type == ValueType::kList && !text.starts_with('[');
    const std::string numbers = with_leading_zeros(text);
    try {
      const toml::table table = toml::parse(bare_list ? "value = [" + numbers + "]" : "value = " + numbers);
      return value_of(*table.get("value"), place);
    } catch (const toml::parse_error&) {
      return text;
    }
  }

  // "0.5" of ".5", which is no number in TOML. Quoted texts stay as they are.
  static std::string with_leading_zeros(const std::string& text) {
    if (text.find_first_of("\"'") != std::string::npos) return text;
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool after_digit = i > 0 && is_digit(text[i - 1]);
      if (text[i] == '.' && !after_digit && i + 1 < text.size() && is_digit(text[i + 1])) result += '0';
      result += text[i];
    }
    return result;
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  static std::vector<std::string> words_between_commas(const std::string& text) {
    std::vector<std::string> words;
    for (const auto word : std::views::split(text, ','))
      words.emplace_back(std::ranges::find_if(word, [](char c) { return c != ' '; }), word.end());
    return words;
  }

  std::vector<std::pair<const Key*, Place>> given_;
  bool other_kind_ = false;  // than the file's, by an override
};

// ---- configurations as text -----------------------------------------------------------------------------------------

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

// Whether a text is a file of parameters of GADGET or SWIFT: three or more of its lines begin with the name of one.
bool is_parameter_file(const std::string& text) {
  std::istringstream lines(text);
  int known = 0;
  for (std::string line, name; std::getline(lines, line);)
    if (std::istringstream(line) >> name && key_for_parameter(plain_word(name)) != nullptr) ++known;
  return known >= 3;
}

toml::table parse_configuration(const std::string& text, const std::string& name) try {
  return parse_toml(text, name);
} catch (const Error&) {
  if (!is_parameter_file(text)) throw;
  throw Error(fmt::format("{} is a file of parameters of GADGET or SWIFT", name), "Maki's configurations are TOML",
              "docs/running.md, \"From GADGET-4 or SWIFT\", has the keys that stand for them");
}

// [sites] is printed only for runs over several sites.
bool is_printed(const Key& key, const Config& config) {
  return key.applies_to(config) && !key.hidden && (key.section != "sites" || !config.sites.ring.empty());
}

}  // namespace

bool sets(const std::string& setting, const std::string& path) {
  const std::string key = setting.substr(0, setting.find('='));
  return key == path || key == path.substr(path.find('.') + 1);
}

Config parse_config(const std::string& text, const std::string& name, const std::vector<std::string>& overrides,
                    const std::string& from) {
  Reader reader;
  reader.read_table(parse_configuration(text, name), name);
  for (const std::string& override_text : overrides) reader.read_override(override_text, from);
  reader.check_applicable();
  reader.read_output_list();
  at_place(name, [&] { check_sites(reader.config); });
  return reader.config;
}

Config load_config(const std::string& path, const std::vector<std::string>& overrides, const std::string& from) {
  const char* advice = "give the path of a configuration, such as configs/quickstart.toml";
  return parse_config(read_text(path, advice), path, overrides, from);
}

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
  lines.push_back(fmt::format("restarts are kept = {}", config.run.restarts_kept > 0));
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
