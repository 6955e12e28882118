#include "src/config/site_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "kernels/error.hpp"
#include "src/config/key_access.hpp"
#include "src/config/text.hpp"
#include "wan/net/secure/key.hpp"
#include "wan/sites/ring.hpp"
#include "wan/sites/ring_plan.hpp"

namespace maki {
namespace {

constexpr const char* kPathTable = "path";
constexpr std::size_t kLongestName = 40;

// A key of [sites.NAME].
struct SiteKey {
  const char* name;
  const char* meaning;
  std::string SiteAddress::*field;
};

const std::vector<SiteKey>& site_keys() {
  static const std::vector<SiteKey> keys = {
      {"address", "host:port where its neighbours in the ring call it; \"\": nobody can, it calls them",
       &SiteAddress::address},
      {"listen", "address:port where it is called, if another one there; \"\": the port of address, at all addresses",
       &SiteAddress::listen},
      {"relay", "host:port of a relay (maki wan relay) by which it is reached where nobody can call it",
       &SiteAddress::relay},
      {"relay_key", "key file of the relay", &SiteAddress::relay_key},
      {"relay_target", "the name by which the relay knows it", &SiteAddress::relay_target},
      {"key", "key file of the link from it to the next site in the ring, which these two hold; \"\": sites.key",
       &SiteAddress::key},
  };
  return keys;
}

// A value as text for [path] tables.
std::string text_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (std::holds_alternative<std::vector<double>>(value) || std::holds_alternative<std::vector<std::string>>(value))
    throw Error(fmt::format("{} does not fit", detail::shown(value)), "", "give one value");
  return detail::shown(value);
}

// The key file of a link, or of all links, in a [path] table, as printed by `maki wan bench`; it has the meaning of the
// key beside the table.
void set_key_file(std::string& key, const std::string& file) {
  if (!key.empty() && key != file)
    throw Error(fmt::format("the key of these paths is '{}' already", key), "it stands beside this table too",
                "leave one of the two out");
  key = file;
}

bool names_file(const std::string& key) { return key == "certificate" || key == "private_key" || key == "authority"; }

// Refuses keys of paths that belong elsewhere in [sites].
void refuse_elsewhere(const std::string& key, bool of_link) {
  if (key.starts_with("relay")) throw Error("a relay belongs to a site", "", "set it in the table of that site");
  const bool of_all = names_file(key) || key == "insecure";
  if (of_link && of_all) throw Error("it is alike for all links", "", "set it in [sites.path]");
}

// Sets a key of a [path] table: `all` has its values, `key_file` is the key beside it; `of_link`: that of one link.
void set_path_value(std::vector<PathValue>& all, std::string& key_file, bool of_link, const std::string& name,
                    const Value& value) {
  const PathKey* key = find_path_key(name);
  if (key == nullptr)
    throw Error("there is no such key", "", fmt::format("did you mean '{}'?", nearest_path_key(name)));
  refuse_elsewhere(name, of_link);
  if (name == "key") return set_key_file(key_file, text_of(value));
  PathChoices choices;
  PathValue given{name, text_of(value)};
  sites::translate_errors([&] { key->set(choices, given.value); });
  const auto place = [](const std::string& word) { return find_path_key(word) - path_keys().data(); };
  std::erase_if(all, [&](const PathValue& one) { return one.key == name; });
  const auto after =
      std::find_if(all.begin(), all.end(), [&](const PathValue& one) { return place(one.key) > place(name); });
  all.insert(after, std::move(given));
}

void check_name(const std::string& name) {
  const auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_'; };
  const bool fits = !name.empty() && name.size() <= kLongestName && std::all_of(name.begin(), name.end(), plain);
  const auto is_key = [&](const Key& key) { return key.section == "sites" && key.name == name; };
  const auto& keys = config_keys();
  if (fits && name != kPathTable && std::none_of(keys.begin(), keys.end(), is_key)) return;
  throw Error(fmt::format("'{}' is no name for a site", name), fits ? "it is a key of [sites]" : "",
              fmt::format("use up to {} letters, digits, - and _", kLongestName));
}

void check_endpoint(const SiteAddress& site, const std::string& text, const char* key, bool any_port) {
  at_place(fmt::format("sites.{}.{}", site.name, key), [&] {
    const wan::Endpoint endpoint = sites::translate_errors([&] { return wan::Endpoint::parse(text); });
    if (endpoint.port == 0 && !any_port) throw Error(fmt::format("'{}' has no port", text));
    if (endpoint.host.empty() && std::string(key) != "listen") throw Error(fmt::format("'{}' has no host", text));
  });
}

void check_address(const SiteAddress& site) {
  const int parts = !site.relay.empty() + !site.relay_key.empty() + !site.relay_target.empty();
  if (parts != 0 && parts != 3) {
    throw Error(fmt::format("sites.{}: a relay needs all of relay, relay_key and relay_target", site.name),
                fmt::format("{} is missing", site.relay.empty()       ? "relay"
                                             : site.relay_key.empty() ? "relay_key"
                                                                      : "relay_target"));
  }
  if (parts == 3) check_endpoint(site, site.relay, "relay", false);
  if (!site.address.empty()) check_endpoint(site, site.address, "address", false);
  if (!site.listen.empty()) check_endpoint(site, site.listen, "listen", true);
}

// Two sites have only one link, that of the first.
void check_has_link(const Config& config, const SiteAddress& site) {
  const auto& ring = config.sites.ring;
  if (ring.size() != 2 || site.name != ring.back() || (site.key.empty() && site.path.empty())) return;
  throw Error(fmt::format("sites.{0}.{1} has no meaning", site.name, site.key.empty() ? "path" : "key"),
              "two sites have one link, which is that of the first in sites.ring",
              fmt::format("give sites.{}.{}", ring.front(), site.key.empty() ? "path" : "key"));
}

const std::string& key_of_link(const Config& config, const SiteAddress& site) {
  return site.key.empty() ? config.sites.key : site.key;
}

// No relay may hold the key of a link.
void check_relay_keys(const Config& config) {
  std::vector<std::string> keys;
  for (const std::string& name : config.sites.ring)
    if (const std::string key = key_of_link(config, find_site(config, name)); !key.empty()) keys.push_back(key);
  for (const SiteAddress& site : config.site_addresses) {
    if (site.relay_key.empty()) continue;
    at_place(fmt::format("sites.{}.relay_key", site.name),
             [&] { sites::translate_errors([&] { wan::check_relay_key(site.relay_key, keys); }); });
  }
}

// Settings of the link from `site` to the next one, which override those of all links.
PathChoices path_choices(const Config& config, const SiteAddress& site) {
  PathChoices choices;
  for (const auto* values : {&config.site_path, &site.path})
    for (const PathValue& value : *values) find_path_key(value.key)->set(choices, value.value);
  const std::string& key = key_of_link(config, site);
  if (!key.empty()) choices.security.key_files.push_back(key);
  at_place(fmt::format("sites.{}", site.path.empty() ? kPathTable : site.name + ".path"),
           [&] { sites::translate_errors([&] { choices.settings.check(); }); });
  return choices;
}

// Enough memory for the data of a round trip of up to a second, as far as the settings give a rate.
std::size_t room_for_unmatched(const wan::PathSettings& path) {
  const double paced = path.pacing_rate, in_windows = 2.0 * path.streams * static_cast<double>(path.window);
  return std::max(path.unmatched_limit, static_cast<std::size_t>(std::min(1e15, std::max(paced, in_windows))));
}

std::string path_table_text(const std::string& table, const std::vector<PathValue>& values) {
  if (values.empty()) return "";
  std::string text = fmt::format("\n[{}]\n", table);
  for (const PathValue& value : values) {
    PathChoices choices;
    const PathKey* key = find_path_key(value.key);
    key->set(choices, value.value);
    text += fmt::format("{} = {}\n", key->name, key->get(choices));
  }
  return text;
}

}  // namespace

void set_site_value(Config& config, const std::string& table, const std::string& key, const Value& value) {
  if (table == kPathTable) return set_path_value(config.site_path, config.sites.key, false, key, value);
  check_name(table);
  const std::string of_path = fmt::format("{}.", kPathTable);
  const auto& keys = site_keys();
  const auto known = std::find_if(keys.begin(), keys.end(), [&](const SiteKey& one) { return one.name == key; });
  if (key == kPathTable)
    throw Error("this is a table", "", fmt::format("give [sites.{}.path] with keys of paths", table));
  if (known == keys.end() && !key.starts_with(of_path)) {
    std::vector<std::string> names;
    for (const SiteKey& one : keys) names.push_back(one.name);
    throw Error("there is no such key", "", fmt::format("did you mean '{}'?", nearest_name(names, key)));
  }
  auto& sites = config.site_addresses;
  auto site = std::find_if(sites.begin(), sites.end(), [&](const SiteAddress& one) { return one.name == table; });
  if (site == sites.end()) {
    sites.emplace_back().name = table;
    site = sites.end() - 1;
  }
  if (known == keys.end()) return set_path_value(site->path, site->key, true, key.substr(of_path.size()), value);
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) throw Error(fmt::format("{} does not fit", detail::shown(value)), "", "give text in quotes");
  (*site).*(known->field) = *text;
}

void check_sites(const Config& config) {
  const auto& ring = config.sites.ring;
  for (const SiteAddress& site : config.site_addresses) {
    if (std::count(ring.begin(), ring.end(), site.name) > 0) continue;
    throw Error(fmt::format("sites.ring does not name the site '{}'", site.name), "it has a table of its own",
                ring.empty() ? "give the order of all sites in sites.ring"
                             : fmt::format("add it, or did you mean '{}'?", nearest_name(ring, site.name)));
  }
  if (ring.empty()) return;
  if (ring.size() > sites::kMostSites)
    throw Error(fmt::format("sites.ring names {} sites", ring.size()), "",
                fmt::format("give at most {}", sites::kMostSites));
  for (const std::string& name : ring) {
    check_name(name);
    if (std::count(ring.begin(), ring.end(), name) > 1)
      throw Error(fmt::format("sites.ring names '{}' more than once", name));
    const SiteAddress site = find_site(config, name);
    check_address(site);
    check_has_link(config, site);
    path_choices(config, site);
  }
  check_relay_keys(config);
}

SiteAddress find_site(const Config& config, const std::string& name) {
  for (const SiteAddress& site : config.site_addresses)
    if (site.name == name) return site;
  SiteAddress none;
  none.name = name;
  return none;
}

int place_in_ring(const Config& config, const std::string& name) {
  const auto& ring = config.sites.ring;
  const auto found = std::find(ring.begin(), ring.end(), name);
  if (found != ring.end()) return static_cast<int>(found - ring.begin());
  throw Error(fmt::format("there is no site '{}'", name), "",
              fmt::format("give --site with one of {}", fmt::join(ring, ", ")));
}

PathChoices site_path(const Config& config, const std::string& left) {
  const SiteAddress site = find_site(config, left);
  PathChoices choices = path_choices(config, site);
  const auto is_limit = [](const PathValue& value) { return value.key == "unmatched_limit"; };
  if (std::ranges::none_of(config.site_path, is_limit) && std::ranges::none_of(site.path, is_limit))
    choices.settings.unmatched_limit = room_for_unmatched(choices.settings);
  const wan::Security& security = choices.security;
  if (security.key_files.empty() && security.certificate.empty() && !security.insecure) {
    throw Error(left.empty() ? "sites.key is not set" : fmt::format("neither sites.{}.key nor sites.key is set", left),
                "sites talk to those only that hold the same key",
                "'maki wan keygen FILE' makes one: give it in the file or on the command line; "
                "sites.path.insecure = true goes without, for tests");
  }
  return choices;
}

std::vector<std::string> key_settings(const Config& config) {
  std::vector<std::string> settings;
  const auto add = [&](const std::string& key, const std::string& file) {
    if (!file.empty()) settings.push_back(fmt::format("{}={}", key, std::filesystem::absolute(file).string()));
  };
  add("sites.key", config.sites.key);
  for (const SiteAddress& site : config.site_addresses) {
    add(fmt::format("sites.{}.key", site.name), site.key);
    add(fmt::format("sites.{}.relay_key", site.name), site.relay_key);
  }
  for (const PathValue& value : config.site_path)
    if (names_file(value.key)) add("sites.path." + value.key, value.value);
  return settings;
}

std::string site_tables_text(const Config& config) {
  std::string text;
  for (const std::string& name : config.sites.ring) {
    for (const SiteAddress& site : config.site_addresses) {
      if (site.name != name) continue;
      text += fmt::format("\n[sites.{}]\n", name);
      for (const SiteKey& key : site_keys()) {
        const std::string& value = site.*(key.field);
        const bool hidden = key.field == &SiteAddress::key;
        if (!value.empty() && !hidden) text += fmt::format("{} = {}\n", key.name, detail::quoted(value));
      }
      text += path_table_text(fmt::format("sites.{}.{}", name, kPathTable), site.path);
    }
  }
  return text + path_table_text(fmt::format("sites.{}", kPathTable), config.site_path);
}

std::string describe_site_tables() {
  std::string text = "\n# A table for each site of the ring, NAME.\n# [sites.NAME]\n";
  for (const SiteKey& key : site_keys()) text += fmt::format("# {}\n# {} = \"\"\n", key.meaning, key.name);
  text +=
      "\n# The link from NAME to the next site in the ring, as 'maki wan bench' finds it: any of the keys below, over "
      "those of all.\n# [sites.NAME.path]\n";
  text += "\n# All links.\n# [sites.path]\n";
  const PathChoices defaults;
  for (const PathKey& key : path_keys()) {
    const std::string name = key.name;
    if (name == "key" || name.starts_with("relay")) continue;
    text += fmt::format("# {}\n# {} = {}\n", key.meaning, name, key.get(defaults));
  }
  return text;
}

}  // namespace maki
