#include "src/config/parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <variant>

#include "kernels/error.hpp"
#include "src/config/text.hpp"
#include "wan/net/settings.hpp"
#include "wan/sites/ring.hpp"

namespace maki {
namespace {

using model::Accelerator, model::Machine, model::MakiConstants, model::Network, model::Site;

enum class Kind { kNumber, kSeconds, kRate };

// A key of a table, and the destination of its value, or what reads it.
struct Entry {
  const char* name;
  std::variant<double*, std::string*, bool*, std::function<void(const toml::node&)>> to;
  Kind kind = Kind::kNumber;
  bool required = false;  // a number
};

double number_of(const toml::node& node, Kind kind, const std::string& place) {
  double number = 0;
  if (const auto plain = node.value<double>()) {
    number = *plain;
  } else if (const auto text = node.value<std::string>(); text && kind != Kind::kNumber) {
    const auto read = kind == Kind::kRate ? wan::parse_rate : wan::parse_seconds;
    number = at_place(place, [&] { return sites::translate_errors([&] { return read(*text); }); });
  } else {
    throw Error(place + ": not a number", "", "give a number in seconds or bytes a second, or text such as \"3 ms\"");
  }
  if (!(number > 0) || !std::isfinite(number)) throw Error(place + ": not above zero", "", "give a positive number");
  return number;
}

void read_node(const toml::node& node, const Entry& entry, const std::string& place) {
  if (double* const* number = std::get_if<double*>(&entry.to)) {
    **number = number_of(node, entry.kind, fmt::format("{}: {}", place, entry.name));
  } else if (std::string* const* to = std::get_if<std::string*>(&entry.to)) {
    const auto text = node.value_exact<std::string>();
    if (!text) throw Error(fmt::format("{}: {} is not a text", place, entry.name), "", "put it in quotes");
    **to = *text;
  } else if (bool* const* to = std::get_if<bool*>(&entry.to)) {
    const auto flag = node.value_exact<bool>();
    if (!flag) throw Error(fmt::format("{}: {} is neither true nor false", place, entry.name));
    **to = *flag;
  } else {
    std::get<std::function<void(const toml::node&)>>(entry.to)(node);
  }
}

void read_table(const toml::table& table, const std::string& file, const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.emplace_back(entry.name);
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end())
      throw Error(fmt::format("{}: there is no key '{}'", place_of(file, node), name), "",
                  fmt::format("did you mean '{}'?", nearest_name(names, name)));
    read_node(node, entries[static_cast<std::size_t>(at - names.begin())], place_of(file, node));
  }
}

bool is_whole(const std::vector<Entry>& entries) {
  return std::ranges::none_of(entries,
                              [](const Entry& entry) { return entry.required && *std::get<double*>(entry.to) == 0; });
}

// [name], with all required numbers; `advice` lists them.
void read_section(const toml::node& node, const std::string& file, const char* name, const std::vector<Entry>& entries,
                  const char* advice) {
  const toml::table* table = node.as_table();
  if (table == nullptr) throw Error(fmt::format("{}: {} is no table", place_of(file, node), name));
  read_table(*table, file, entries);
  if (!is_whole(entries)) throw Error(fmt::format("{}: [{}] is not complete", place_of(file, node), name), "", advice);
}

Site read_site(const toml::table& table, const std::string& file) {
  Site site;
  const std::vector<Entry> entries = {{"name", &site.name},
                                      {"tree", &site.tree, Kind::kSeconds, true},
                                      {"fft", &site.fft, Kind::kSeconds, true},
                                      {"mesh", &site.mesh, Kind::kSeconds, true},
                                      {"direct", &site.direct, Kind::kSeconds},
                                      {"processes", &site.processes}};
  read_table(table, file, entries);
  if (is_whole(entries)) return site;
  throw Error(fmt::format("{}: site '{}' lacks a constant", place_of(file, table), site.name), "",
              "give tree, fft and mesh in seconds");
}

Network read_network(const toml::node& node, const std::string& file) {
  Network network;
  read_section(node, file, "network",
               {{"star", &network.star},
                {"lan_round_trip", &network.lan_round_trip, Kind::kSeconds, true},
                {"wan_round_trip", &network.wan_round_trip, Kind::kSeconds, true},
                {"lan_rate", &network.lan_rate, Kind::kRate, true},
                {"wan_rate", &network.wan_rate, Kind::kRate, true}},
               "give lan_round_trip, lan_rate, wan_round_trip and wan_rate");
  return network;
}

Accelerator read_accelerator(const toml::node& node, const std::string& file) {
  Accelerator gpu;
  read_section(node, file, "accelerator",
               {{"host_rate", &gpu.host_rate, Kind::kRate, true},
                {"transfer_rate", &gpu.transfer_rate, Kind::kRate, true},
                {"gpu_rate", &gpu.gpu_rate, Kind::kRate, true},
                {"inject_rate", &gpu.inject_rate, Kind::kRate},
                {"gpu_flops", &gpu.gpu_flops, Kind::kNumber, true}},
               "give host_rate, transfer_rate, gpu_rate and gpu_flops");
  return gpu;
}

MakiConstants read_maki(const toml::node& node, const std::string& file) {
  MakiConstants c;
  read_section(node, file, "maki",
               {{"pair", &c.pair, Kind::kSeconds, true},
                {"interactions", &c.interactions, Kind::kNumber, true},
                {"reach", &c.reach},
                {"made", &c.made, Kind::kSeconds},
                {"fixed_made", &c.fixed_made, Kind::kSeconds},
                {"near", &c.near},
                {"doubling", &c.doubling, Kind::kSeconds},
                {"kept", &c.kept, Kind::kSeconds},
                {"fixed_kept", &c.fixed_kept, Kind::kSeconds},
                {"mesh_particle", &c.mesh_particle, Kind::kSeconds},
                {"mesh_cell", &c.mesh_cell, Kind::kSeconds},
                {"code_cell", &c.code_cell, Kind::kSeconds},
                {"fixed_code", &c.fixed_code, Kind::kSeconds}},
               "give pair and interactions at least, or make one: maki model calibrate");
  return c;
}

}  // namespace

Machine parse_machine(const std::string& text, const std::string& name) {
  Machine machine;
  read_table(parse_toml(text, name), name,
             {{"name", &machine.name},
              {"source", &machine.source},
              {"network", [&](const toml::node& node) { machine.network = read_network(node, name); }},
              {"accelerator", [&](const toml::node& node) { machine.accelerator = read_accelerator(node, name); }},
              {"maki", [&](const toml::node& node) { machine.maki = read_maki(node, name); }},
              {"site", [&](const toml::node& node) {
                 if (!node.is_array_of_tables())
                   throw Error(fmt::format("{}: 'site' is not a list", place_of(name, node)), "",
                               "write [[site]], also for a single one");
                 for (const toml::node& site : *node.as_array())
                   machine.sites.push_back(read_site(*site.as_table(), name));
               }}});
  return machine;
}

Machine read_machine(const std::string& path) {
  return parse_machine(read_text(path, "give the path of a machine, such as configs/machines/h100_node.toml"), path);
}

}  // namespace maki
