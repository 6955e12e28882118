// Configurations from files, text and command lines, and as text; machines of the performance models.
#pragma once

#include <string>
#include <vector>

#include "src/config/config.hpp"
#include "src/model/machine.hpp"

namespace maki {

// Reads a TOML file, then the overrides "section.key=value" (or "key=value" where only one section has the key). The
// text of a value on a command line needs no quotes: box.size=50 Mpc/h. Throws Error on unreadable files, invalid TOML,
// unknown keys (with the nearest known one), wrong types, values out of range, keys without a meaning for the kind of
// run; the message names the file and the line, or the override. The file output.list is read too: its numbers become
// output.redshifts or output.times.
// `from` names the source of the overrides in messages.
Config load_config(const std::string& path, const std::vector<std::string>& overrides = {},
                   const std::string& from = "command line");
// As load_config(), but from text; `name` stands for the file in messages.
Config parse_config(const std::string& text, const std::string& name, const std::vector<std::string>& overrides = {},
                    const std::string& from = "command line");

// Whether a setting "key=value" is one of the key `path`, "section.key", also by the key's name alone.
bool sets(const std::string& setting, const std::string& path);

// Valid TOML that parses to the same Config: every key that has a meaning for this kind of run, but for sites.key.
std::string to_toml(const Config& config);

// Lines such as "box.size = "50 Mpc/h"": all settings of an unresolved configuration that differ from the default,
// without key files.
std::vector<std::string> chosen_lines(const Config& config);

// Lines of a resolved configuration that must be the same at all sites of a run: without addresses and paths, which may
// differ with the network, and without keys that each site sets for itself.
std::vector<std::string> lines_of_all_sites(const Config& config);

// Every key with default, unit, range and meaning: what `maki config` prints, itself a valid TOML file.
std::string describe_keys();

// Machines for the performance models (src/model) from TOML, as those of configs/machines/: [network], [[site]] in the
// order of the ring, [accelerator], with the names of the fields as keys. Numbers are seconds and bytes a second; text
// has a unit.

// `name` stands for the file in messages. Throws Error on invalid TOML, unknown keys (with the nearest known one),
// values that are not numbers above zero, unknown units.
model::Machine parse_machine(const std::string& text, const std::string& name);
model::Machine read_machine(const std::string& path);

}  // namespace maki
