// The Python module maki._core: the functions of src/; here configurations and files of particles. The names for users
// are in maki/__init__.py.
#include <fmt/ranges.h>
#include <pthread.h>

#include <sstream>

#include "build_info.hpp"
#include "host/comm/communicator.hpp"
#include "kernels/device/device.hpp"
#include "kernels/error.hpp"
#include "src/config/keys.hpp"
#include "src/config/parse.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/python/bind.hpp"
#include "src/run/build.hpp"
#include "src/run/run_options.hpp"
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
    require_same_settings(lines_of_all_sites(config));
    use_threads(config);
    run = prepare(config);
  }
  return nb::make_tuple(std::move(run.initial), run.notes);
}

nb::object read(const std::string& path) {
  ReadReport report;
  Snapshot set;
  {
    const Computing computing;
    set = read_snapshot(path, &report, Communicator::world());
  }
  return nb::make_tuple(std::move(set), report.format, report.files, report.counts, report.notes);
}

std::vector<ExtraDataset> datasets(const std::vector<nb::tuple>& extras) {
  std::vector<ExtraDataset> all;
  for (const nb::tuple& extra : extras) {
    ExtraDataset& one = all.emplace_back();
    one.name = nb::cast<std::string>(extra[0]);
    const auto values = nb::cast<nb::ndarray<const double, nb::c_contig, nb::device::cpu>>(extra[1]);
    one.components = values.ndim() > 1 ? values.shape(1) : 1;
    one.values.assign(values.data(), values.data() + values.size());
    one.double_precision = true;
  }
  return all;
}

// A choice by its name in configurations.
template <class E>
E named(const std::string& word) {
  for (const auto& name : kNames<E>)
    if (name.text == word) return name.value;
  throw Error("there is no '" + word + "'", "", "see output.coordinates, velocities and layout in the configuration");
}

// Sets that readers would refuse are not written.
nb::object write(const std::string& path, const Snapshot& set, const WriteOptions& options,
                 const std::vector<nb::tuple>& extras, const std::string& configuration) {
  const std::vector<ExtraDataset> more = datasets(extras);
  std::vector<std::string> names, notes;
  {
    const Computing computing;
    const Communicator ranks = Communicator::world();
    names = write_snapshot(path, checked(set, notes, ranks), provenance(configuration, "host"), options, more, ranks);
  }
  return nb::make_tuple(names, notes);
}

}  // namespace

void require_same_settings(const std::vector<std::string>& lines) {
  const Communicator ranks = Communicator::world();
  std::istringstream firsts(broadcast_text(ranks, fmt::format("{}", fmt::join(lines, "\n"))));
  all_succeed(ranks, [&] {
    std::string first;
    for (const std::string& line : lines)
      if (std::getline(firsts, first); first != line)
        throw Error("the ranks have different settings",
                    fmt::format("{} on rank 0, and {} on rank {}", first, line, ranks.rank()),
                    "make the same calls on all ranks");
  });
}

static void bind_config(nb::module_& module) {
  nb::class_<Config>(module, "Configuration")
      .def("toml", &to_toml, "All keys that have a meaning for this kind of run, as TOML.")
      .def_prop_ro("output_directory", [](const Config& config) {
        return config.run.output_directory.value_or("output/" + config.run.name);
      });
  module.def("read_config", &read_config, "path"_a.none(), "settings"_a);
  module.def("describe_keys", &describe_keys);
  module.def("initial_conditions", &initial_conditions, "config"_a);
}

// Calls that neither compute nor touch Python's objects: other Python threads run meanwhile.
using waits_for_hdf5 = nb::call_guard<nb::gil_scoped_release>;

static std::vector<double> extra_dataset(const std::string& path, const std::string& name) {
  const nb::gil_scoped_release others_run;
  return read_extra_dataset(path, name);
}

// Properties that are set alone.
static const char* unread(const WriteOptions&) { return ""; }
template <class E>
static auto by_name(E WriteOptions::*choice) {
  return [choice](WriteOptions& options, const std::string& name) { options.*choice = named<E>(name); };
}

static void bind_files(nb::module_& module) {
  nb::class_<WriteOptions>(module, "WriteOptions")
      .def(nb::init<>())
      .def_prop_rw("format", unread,
                   [](WriteOptions& options, const std::string& name) { options.format = snapshot_format(name); })
      .def_rw("files", &WriteOptions::files)
      .def_prop_rw("coordinates", unread, by_name(&WriteOptions::coordinates))
      .def_prop_rw("velocities", unread, by_name(&WriteOptions::velocities))
      .def_prop_rw("layout", unread, by_name(&WriteOptions::layout))
      .def_rw("fields", &WriteOptions::fields)
      .def_rw("compression", &WriteOptions::deflate)
      .def_rw("id_bits", &WriteOptions::id_bits)
      .def_rw("big_endian", &WriteOptions::big_endian)
      .def_rw("overwrite", &WriteOptions::overwrite);
  module.def("read", &read, "path"_a);
  module.def("write", &write, "path"_a, "set"_a, "options"_a, "extras"_a, "configuration"_a);
  module.def("read_dataset",
             [](const std::string& path, const std::string& name) { return array_of(extra_dataset(path, name)); });
  module.def("read_configuration", &read_configuration, "path"_a, waits_for_hdf5(),
             "The configuration that a snapshot of Maki holds, as TOML; '' for others.");
  module.def("describe", &describe_file, "path"_a, waits_for_hdf5());
}

}  // namespace maki::python

NB_MODULE(_core, module) {
  using namespace maki::python;
  nb::set_leak_warnings(false);  // what a daemon thread holds when Python ends is no fault
  pthread_atfork(nullptr, nullptr, &Forks::in_child);
  // Base class before derived class: the last registered one is tried first.
  const auto error = nb::exception<maki::Error>(module, "Error", PyExc_RuntimeError);
  nb::exception<maki::DeviceError>(module, "DeviceError", error);
  module.attr("version") = MAKI_VERSION;
  module.attr("backend") = maki::backend_name();
  module.def("version_text", &maki::version_text,
             "Version, commit, backend, compiler and libraries, as maki --version.");
  bind_units(module);
  bind_snapshot(module);
  bind_files(module);
  bind_config(module);
  bind_simulation(module);
  bind_forces(module);
  bind_products(module);
  bind_groups(module);
}
