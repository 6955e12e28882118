// Configurations, and their initial conditions.
#include "src/config/parse.hpp"
#include "src/config/resolve.hpp"
#include "src/python/bind.hpp"
#include "src/run/setup.hpp"

namespace maki::python {
namespace {

constexpr const char* kFrom = "keywords";

Config read_config(const std::optional<std::string>& path, const std::vector<std::string>& settings) {
  return path ? load_config(*path, settings, kFrom) : parse_config("", "defaults", settings, kFrom);
}

nb::object initial_conditions(const Config& config) {
  Prepared run;
  {
    const Computing computing;
    run = prepare(config);
  }
  return nb::make_tuple(std::move(run.initial), run.notes);
}

}  // namespace

void bind_config(nb::module_& module) {
  nb::class_<Config>(module, "Configuration")
      .def("toml", &to_toml, "All keys that have a meaning for this kind of run, as TOML.")
      .def_prop_ro("output_directory", [](const Config& config) {
        return config.run.output_directory.value_or("output/" + config.run.name);
      });
  module.def("read_config", &read_config, "path"_a.none(), "settings"_a);
  module.def("describe_keys", &describe_keys);
  module.def("initial_conditions", &initial_conditions, "config"_a);
}

}  // namespace maki::python
