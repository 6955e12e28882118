#include "src/config/machine_file.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "kernels/error.hpp"
#include "src/config/text.hpp"
#include "wan/net/settings.hpp"
#include "wan/sites/ring.hpp"

namespace maki {
namespace {

using model::Accelerator, model::Machine, model::MakiConstants, model::Network, model::Site;

enum class Kind { kNumber, kSeconds, kRate };

// A key of a table, and the destination of its value.
struct Entry {
  const char* name;
  Kind kind;
  double* value;
};

std::string place_of(const std::string& file, const toml::node& node) {
  return fmt::format("{} line {}", file, node.source().begin.line);
}

double number_of(const toml::node& node, Kind kind, const std::string& place) {
  double number = 0;
  if (const auto plain = node.value<double>()) {
    number = *plain;
  } else if (const auto text = node.value<std::string>(); text && kind != Kind::kNumber) {
    number = sites::translate_errors(
        [&] { return kind == Kind::kRate ? wan::parse_rate(*text) : wan::parse_seconds(*text); },
        [&](const std::string& problem) { return Error(fmt::format("{}: {}", place, problem)); });
  } else {
    throw Error(place + ": not a number", "", "give a number in seconds or bytes a second, or text such as \"3 ms\"");
  }
  if (!(number > 0) || !std::isfinite(number)) throw Error(place + ": not above zero", "", "give a positive number");
  return number;
}

[[noreturn]] void unknown(const std::string& place, const std::string& key, const std::vector<std::string>& known) {
  throw Error(fmt::format("{}: there is no key '{}'", place, key), "",
              fmt::format("did you mean '{}'?", nearest_name(known, key)));
}

// Passes numbers to `entries` and all other keys to `other`, which returns whether it knows the key.
void read_table(const toml::table& table, const std::string& file, const std::vector<Entry>& entries,
                const std::vector<std::string>& others,
                const std::function<bool(const std::string&, const toml::node&)>& other) {
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    const std::string place = place_of(file, node);
    bool known = false;
    for (const Entry& entry : entries)
      if (name == entry.name) *entry.value = number_of(node, entry.kind, place + ": " + name), known = true;
    if (known || other(name, node)) continue;
    std::vector<std::string> names = others;
    for (const Entry& entry : entries) names.emplace_back(entry.name);
    unknown(place, name, names);
  }
}

const toml::table& table_of(const toml::node& node, const std::string& file, const char* name) {
  const toml::table* table = node.as_table();
  if (table == nullptr) throw Error(fmt::format("{}: {} is no table", place_of(file, node), name));
  return *table;
}

std::string text_of(const toml::node& node, const std::string& file, const std::string& key) {
  const auto text = node.value_exact<std::string>();
  if (!text) throw Error(fmt::format("{}: {} is not a text", place_of(file, node), key), "", "put it in quotes");
  return *text;
}

bool flag_of(const toml::node& node, const std::string& file, const std::string& key) {
  const auto flag = node.value_exact<bool>();
  if (!flag) throw Error(fmt::format("{}: {} is neither true nor false", place_of(file, node), key));
  return *flag;
}

Site read_site(const toml::table& table, const std::string& file) {
  Site site;
  read_table(table, file,
             {{"tree", Kind::kSeconds, &site.tree},
              {"fft", Kind::kSeconds, &site.fft},
              {"mesh", Kind::kSeconds, &site.mesh},
              {"direct", Kind::kSeconds, &site.direct},
              {"processes", Kind::kNumber, &site.processes}},
             {"name"}, [&](const std::string& key, const toml::node& node) {
               if (key == "name") site.name = text_of(node, file, key);
               return key == "name";
             });
  if (site.tree == 0 || site.fft == 0 || site.mesh == 0) {
    throw Error(fmt::format("{}: site '{}' lacks a constant", place_of(file, table), site.name), "",
                "give tree, fft and mesh in seconds");
  }
  return site;
}

Network read_network(const toml::table& table, const std::string& file) {
  Network network;
  read_table(table, file,
             {{"lan_round_trip", Kind::kSeconds, &network.lan_round_trip},
              {"wan_round_trip", Kind::kSeconds, &network.wan_round_trip},
              {"lan_rate", Kind::kRate, &network.lan_rate},
              {"wan_rate", Kind::kRate, &network.wan_rate}},
             {"star"}, [&](const std::string& key, const toml::node& node) {
               if (key == "star") network.star = flag_of(node, file, key);
               return key == "star";
             });
  if (network.lan_round_trip == 0 || network.wan_round_trip == 0 || network.lan_rate == 0 || network.wan_rate == 0) {
    throw Error(fmt::format("{}: [network] is not complete", place_of(file, table)), "",
                "give lan_round_trip, lan_rate, wan_round_trip and wan_rate");
  }
  return network;
}

Accelerator read_accelerator(const toml::table& table, const std::string& file) {
  Accelerator gpu;
  read_table(table, file,
             {{"host_rate", Kind::kRate, &gpu.host_rate},
              {"transfer_rate", Kind::kRate, &gpu.transfer_rate},
              {"gpu_rate", Kind::kRate, &gpu.gpu_rate},
              {"inject_rate", Kind::kRate, &gpu.inject_rate},
              {"gpu_flops", Kind::kNumber, &gpu.gpu_flops}},
             {}, [](const std::string&, const toml::node&) { return false; });
  if (gpu.host_rate == 0 || gpu.transfer_rate == 0 || gpu.gpu_rate == 0 || gpu.gpu_flops == 0) {
    throw Error(fmt::format("{}: [accelerator] is not complete", place_of(file, table)), "",
                "give host_rate, transfer_rate, gpu_rate and gpu_flops");
  }
  return gpu;
}

MakiConstants read_maki(const toml::table& table, const std::string& file) {
  MakiConstants c;
  read_table(table, file,
             {{"pair", Kind::kSeconds, &c.pair},
              {"interactions", Kind::kNumber, &c.interactions},
              {"reach", Kind::kNumber, &c.reach},
              {"made", Kind::kSeconds, &c.made},
              {"fixed_made", Kind::kSeconds, &c.fixed_made},
              {"near", Kind::kNumber, &c.near},
              {"doubling", Kind::kSeconds, &c.doubling},
              {"kept", Kind::kSeconds, &c.kept},
              {"fixed_kept", Kind::kSeconds, &c.fixed_kept},
              {"mesh_particle", Kind::kSeconds, &c.mesh_particle},
              {"mesh_cell", Kind::kSeconds, &c.mesh_cell},
              {"code_cell", Kind::kSeconds, &c.code_cell},
              {"fixed_code", Kind::kSeconds, &c.fixed_code}},
             {}, [](const std::string&, const toml::node&) { return false; });
  if (c.pair == 0 || c.interactions == 0) {
    throw Error(fmt::format("{}: [maki] is not complete", place_of(file, table)), "",
                "give pair and interactions at least, or make one: maki model calibrate");
  }
  return c;
}

}  // namespace

Machine parse_machine(const std::string& text, const std::string& name) {
  const toml::table file = parse_toml(text, name);
  Machine machine;
  read_table(file, name, {}, {"name", "source", "network", "accelerator", "maki", "site"},
             [&](const std::string& key, const toml::node& node) {
               if (key == "name")
                 machine.name = text_of(node, name, key);
               else if (key == "source")
                 machine.source = text_of(node, name, key);
               else if (key == "network")
                 machine.network = read_network(table_of(node, name, "network"), name);
               else if (key == "accelerator")
                 machine.accelerator = read_accelerator(table_of(node, name, "accelerator"), name);
               else if (key == "maki")
                 machine.maki = read_maki(table_of(node, name, "maki"), name);
               else if (key == "site" && !node.is_array_of_tables())
                 throw Error(fmt::format("{}: 'site' is not a list", place_of(name, node)), "",
                             "write [[site]], also for a single one");
               else if (key == "site")
                 for (const toml::node& site : *node.as_array())
                   machine.sites.push_back(read_site(*site.as_table(), name));
               else
                 return false;
               return true;
             });
  return machine;
}

Machine read_machine(const std::string& path) {
  return parse_machine(read_text(path, "give the path of a machine, such as configs/machines/h100_node.toml"), path);
}

}  // namespace maki
