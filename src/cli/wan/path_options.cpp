#include "src/cli/wan/path_options.hpp"

#include <fmt/format.h>

#include "kernels/error.hpp"
#include "src/config/text.hpp"
#include "wan/net/secure/key.hpp"
#include "wan/sites/ring.hpp"

namespace maki {

namespace {

void set_key(const PathKey& key, const std::vector<std::string>& values, PathChoices& choices) {
  sites::translate_errors([&] {
    if (key.clear != nullptr) key.clear(choices);
    for (const std::string& value : values) key.set(choices, value);
  });
}

std::string text_of(const toml::node& node) {
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* integer = node.as_integer()) return fmt::format("{}", integer->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* text = node.as_string()) return text->get();
  throw Error("a table, list or date does not fit here", "", "give a number or text");
}

std::vector<std::string> texts_of(const PathKey& key, const toml::node& node) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return {text_of(node)};
  if (!key.list) throw Error("a list does not fit here", "", "give one value");
  std::vector<std::string> texts;
  for (const toml::node& element : *array) texts.push_back(text_of(element));
  return texts;
}

void check_whole(const PathChoices& choices) {
  const wan::Security& security = choices.security;
  if (security.key_files.empty() && security.certificate.empty() && !security.insecure) {
    throw Error("nothing says who may be at the other end", "paths are encrypted, and both ends show a key",
                "give --key FILE ('maki wan keygen FILE' makes one), or --certificate, --private-key and --authority; "
                "--insecure goes without");
  }
  const wan::RelayRoute& relay = choices.relay;
  const int parts = (relay.relay.port != 0) + !relay.key_file.empty() + !relay.target.empty();
  if (parts != 0 && parts != 3) {
    throw Error("a relay needs all of --relay HOST:PORT, --relay-key FILE and --relay-target NAME",
                fmt::format("{} is missing", relay.relay.port == 0    ? "--relay"
                                             : relay.key_file.empty() ? "--relay-key"
                                                                      : "--relay-target"));
  }
  if (relay.used()) wan::check_relay_key(relay.key_file, security.key_files);
  choices.settings.check();
}

}  // namespace

void add_path_options(CLI::App& command, PathOptions& options) {
  command.add_option("--config", options.file, "file (TOML) whose [path] table has these options: send_chunk = '1 MB'")
      ->type_name("FILE");
  for (const PathKey& key : path_keys()) {
    if (*key.value == '\0') {
      command.add_flag(key.option(), options.switches[key.name], key.meaning)->group(key.group);
      continue;
    }
    CLI::Option* option = command.add_option(key.option(), options.given[key.name], key.meaning);
    option->type_name(key.value)->group(key.group)->allow_extra_args(false);
    if (!key.list) option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
}

void read_path_table(const std::string& text, const std::string& name, PathChoices& choices) {
  const toml::table file = parse_toml(text, name);
  for (const auto& [section, node] : file) {
    const toml::table* keys = node.as_table();
    if (section.str() != "path" || keys == nullptr) {
      throw Error(fmt::format("{}: there is no '{}' here", place_of(name, node), section.str()), "",
                  "a file of --config has one table, [path]");
    }
    for (const auto& [word, value] : *keys) {
      const std::string given(word.str());
      const PathKey* key = find_path_key(given);
      if (key == nullptr) {
        throw Error(fmt::format("{}: there is no key 'path.{}'", place_of(name, value), given), "",
                    fmt::format("did you mean '{}'?", nearest_path_key(given)));
      }
      at_place(fmt::format("{}: {}", place_of(name, value), given),
               [&, &value = value] { set_key(*key, texts_of(*key, value), choices); });
    }
  }
}

PathChoices read_path_options(const PathOptions& options, const PathChoices& base) {
  PathChoices choices = base;
  if (!options.file.empty())
    read_path_table(read_text(options.file, "give the path of a file with a [path] table"), options.file, choices);
  for (const PathKey& key : path_keys()) {
    const auto values = options.given.find(key.name);
    if (values != options.given.end() && !values->second.empty())
      at_place(key.option(), [&] { set_key(key, values->second, choices); });
    const auto flag = options.switches.find(key.name);
    if (flag != options.switches.end() && flag->second) key.set(choices, "true");
  }
  auto& keys = choices.security.key_files;
  if (choices.security.certificate.empty()) keys.insert(keys.end(), options.more_keys.begin(), options.more_keys.end());
  check_whole(choices);
  return choices;
}

std::string path_toml(const PathChoices& choices) {
  const PathChoices defaults;
  std::string text = "[path]\n";
  for (const PathKey& key : path_keys()) {
    const std::string value = key.get(choices);
    if (value != key.get(defaults)) text += fmt::format("{} = {}\n", key.name, value);
  }
  return text;
}

namespace {

using wan::copy::ServerOptions;
using wan::copy::Share;

void add_share(ServerOptions& server, const std::string& identity, const Share& share) {
  if (!server.shares.emplace(identity, share).second)
    throw Error(fmt::format("the {} is given twice", share.holder), "",
                "give each key one folder, by --allow or by --key");
}

std::string line_of(const Share& share) {
  return fmt::format("{}: {}, {}", share.holder, share.root, share.read_only ? "reading only" : "reading and writing");
}

}  // namespace

void add_share_options(CLI::App& command, ShareOptions& options) {
  command.add_option("--root", options.root, "folder of all who have no --allow; remote names count from it");
  command.add_flag("--read-only", options.read_only, "take no files into --root");
  command
      .add_option("--allow", options.allowed,
                  "let the holder of this key have this folder alone: to read (:ro, also where nothing is said) or to "
                  "read and write (:rw); may be given many times. With certificates: the name in the client's in place "
                  "of a key file")
      ->type_name("KEYFILE:ROOT[:ro|:rw]")
      ->allow_extra_args(false);
}

Allowed parse_allowed(const std::string& text) {
  const std::size_t colon = text.find(':');
  Allowed allowed{text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
  for (const char* mode : {":ro", ":rw"})
    if (allowed.root.ends_with(mode)) {
      allowed.read_only = mode == std::string_view(":ro");
      allowed.root.resize(allowed.root.size() - 3);
      break;
    }
  if (allowed.who.empty() || allowed.root.empty())
    throw Error(fmt::format("--allow: '{}' does not fit", text),
                "it names a key file, a folder and what may be done there", "give KEYFILE:ROOT:ro or KEYFILE:ROOT:rw");
  return allowed;
}

std::vector<std::string> keys_of(const ShareOptions& options) {
  std::vector<std::string> files;
  for (const std::string& text : options.allowed) files.push_back(parse_allowed(text).who);
  return files;
}

void set_shares(const ShareOptions& options, const wan::Security& security, ServerOptions& server) {
  const bool certificates = !security.certificate.empty();
  if (security.insecure && !options.allowed.empty())
    throw Error("--allow cannot be kept", "without encryption anyone may call, and nobody shows a key",
                "leave --insecure out");
  for (const std::string& text : options.allowed) {
    const Allowed allowed = parse_allowed(text);
    add_share(server, certificates ? allowed.who : wan::read_key(allowed.who).id,
              {allowed.root, allowed.read_only, (certificates ? "certificate " : "key ") + allowed.who});
  }
  const std::size_t own = security.key_files.size() - (certificates ? 0 : options.allowed.size());
  if (options.root.empty()) {
    if (options.allowed.empty() || own > 0)
      throw Error("no folder is served to those who have no --allow", "", "give --root FOLDER");
    return;
  }
  for (std::size_t i = 0; i < own; ++i)
    add_share(server, wan::read_key(security.key_files[i]).id,
              {options.root, options.read_only, "key " + security.key_files[i]});
  if (own > 0) return;
  if (!certificates && !security.insecure)
    throw Error("nobody may have --root", "all keys are those of --allow", "give --key FILE, or leave --root out");
  server.others = Share{options.root, options.read_only, certificates ? "" : "without a key"};
}

std::vector<std::string> shares_text(const ServerOptions& server) {
  std::vector<std::string> lines;
  for (const auto& [identity, share] : server.shares) lines.push_back(line_of(share));
  if (server.others) {
    Share others = *server.others;
    if (others.holder.empty()) others.holder = "other certificates";
    lines.push_back(line_of(others));
  }
  return lines;
}

std::optional<RemotePath> parse_remote(const std::string& text) {
  const std::size_t host_end = text.starts_with('[') ? text.find("]:") : text.find(':');
  if (host_end == std::string::npos || host_end == 0) return {};
  const std::size_t port = text.find_first_of("0123456789", host_end);
  if (port != host_end + (text[host_end] == ']' ? 2 : 1)) return {};
  const std::size_t port_end = std::min(text.find_first_not_of("0123456789", port), text.size());
  if (text.find('/') < port || (port_end < text.size() && text[port_end] != '/')) return {};
  RemotePath remote;
  remote.host = wan::Endpoint::parse(text.substr(0, port_end));
  remote.path = port_end < text.size() ? text.substr(port_end + 1) : "";
  return remote;
}

}  // namespace maki
