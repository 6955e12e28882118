// Measurements of given particles: power spectra, pictures, forces and potentials, friends-of-friends groups.
#include <numeric>
#include <utility>

#include "kernels/error.hpp"
#include "src/groups/catalogue.hpp"
#include "src/python/bind.hpp"
#include "src/run/build.hpp"
#include "src/run/forces.hpp"
#include "src/run/products.hpp"
#include "src/run/run_options.hpp"

namespace maki::python {

namespace {

using Notes = std::vector<std::string>;

LoadedSet load(const Snapshot& set, Notes& notes) {
  const Communicator ranks = Communicator::world();
  return {checked(set, notes, ranks), "particles given in Python", ranks};
}

std::pair<PowerTable, Notes> power(const Snapshot& set, int mesh, int folding, const std::optional<std::string>& path,
                                   bool overwrite) {
  const Computing computing;
  Notes notes;
  const LoadedSet loaded = load(set, notes);
  SpectrumOptions options{mesh, folding};
  if (options.cells == 0) options.cells = default_power_mesh(particles_of_all(loaded.set()));
  const PowerTable table = power_of(loaded.set(), options);
  root_succeeds(loaded.ranks(), [&] {
    if (path) write_power_file(*path, table, loaded.header(), loaded.provenance(), overwrite);
  });
  return {table, notes};
}

nb::object image(const Snapshot& set, const PictureOptions& options) {
  std::vector<float> density;
  Notes notes;
  {
    const Computing computing;
    const LoadedSet loaded = load(set, notes);
    density = picture_of(loaded.set(), loaded.fitted(options));
  }
  const auto side = static_cast<std::size_t>(options.pixels);
  return nb::make_tuple(array_of<float>(std::move(density), {side, side}), notes);
}

Notes write_image_file(const Snapshot& set, const std::string& path, const PictureOptions& options, bool overwrite) {
  const Computing computing;
  Notes notes;
  const LoadedSet loaded = load(set, notes);
  write_picture_of(loaded.set(), loaded.fitted(options), path, loaded.provenance(), overwrite);
  return notes;
}

}  // namespace

void bind_products(nb::module_& module) {
  nb::class_<PowerTable>(module, "Power", "A power spectrum, by bin; shot noise is not taken off.")
      .def_prop_ro("k", view_of(&PowerTable::k),
                   "Wave numbers, radians per length unit: the means over the modes of the bins.")
      .def_prop_ro("power", view_of(&PowerTable::power), "P(k), length unit^3.")
      .def_prop_ro("modes", view_of(&PowerTable::modes), "Fourier modes in the bin.")
      .def_prop_ro("folding", view_of(&PowerTable::folding), "Times that the box was folded onto the mesh, by bin.")
      .def_ro("shot_noise", &PowerTable::shot_noise, "P of a random distribution of these particles.")
      .def_ro("mesh", &PowerTable::mesh)
      .def_ro("growth", &PowerTable::growth, "Linear growth factor, 1 today; 0 where unknown.")
      .def_ro("length_unit", &PowerTable::length_unit);
  module.def("power", &power, "set"_a, "mesh"_a, "folding"_a, "path"_a.none(), "overwrite"_a);
  nb::class_<PictureOptions>(module, "PictureOptions")
      .def(nb::init<>())
      .def_rw("pixels", &PictureOptions::pixels)
      .def_rw("axis", &PictureOptions::axis)
      .def_rw("width", &PictureOptions::width)
      .def_rw("depth", &PictureOptions::depth);
  module.def("image", &image, "set"_a, "options"_a);
  module.def("write_image", &write_image_file, "set"_a, "path"_a, "options"_a, "overwrite"_a);
}

namespace {

ForceMethod method_of(const std::string& name) {
  if (name == "run") return ForceMethod::kRun;
  if (name == "direct") return ForceMethod::kDirect;
  if (name == "ewald") return ForceMethod::kEwald;
  throw Error("method is '" + name + "'", "", "give 'run', 'direct' (isolated sets) or 'ewald' (periodic boxes)");
}

SetForces forces_on(const Prepared& run, ForceMethod method, const std::optional<Vectors<double>>& points) {
  if (points) return forces_at(run, method, to_vectors<double>(*points));
  std::vector<std::size_t> all(run.particles);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return forces_of(run, method, all);
}

nb::object forces(const Snapshot& set, Config config, const std::string& method,
                  const std::optional<Vectors<double>>& points) {
  SetForces result;
  Notes notes;
  {
    const Computing computing;
    require_whole_sets("maki.forces");
    const ForceMethod chosen = method_of(method);
    use_device(config, Communicator::self());
    config.output = {};
    config.lightcone = {};
    const Prepared run = prepare(config, checked(set, notes), Communicator::self());
    notes.insert(notes.end(), run.notes.begin(), run.notes.end());
    result = forces_on(run, chosen, points);
  }
  return nb::make_tuple(array_of(std::move(result.acceleration)), array_of(std::move(result.potential)), notes);
}

}  // namespace

void bind_forces(nb::module_& module) {
  module.def("forces", &forces, "set"_a, "config"_a, "method"_a, "points"_a.none());
}

namespace {

std::pair<GroupCatalogue, Notes> find(const Snapshot& set, const GroupOptions& options) {
  const Computing computing;
  Notes notes;
  LoadedSet loaded = load(set, notes);
  GroupCatalogue found = loaded.find_groups(options);
  gather_members(loaded.ranks(), found);
  return {std::move(found), notes};
}

// One property of all groups.
template <class T, class Property>
auto column(Property property) {
  return [property](const GroupCatalogue& catalogue) {
    std::vector<T> values;
    values.reserve(catalogue.groups.size());
    for (const FofGroup& group : catalogue.groups) values.push_back(std::invoke(property, group));
    return array_of(std::move(values));
  };
}

nb::object spheres(const GroupCatalogue& catalogue, double Overdensity::*property) {
  nb::dict by_name;
  for (std::size_t kind = 0; kind < kSphereKinds; ++kind) {
    const auto of_group = [kind, property](const FofGroup& group) { return group.spheres[kind].*property; };
    by_name[kSphereNames[kind]] = column<double>(of_group)(catalogue);
  }
  return by_name;
}

void write(const GroupCatalogue& catalogue, const std::string& path, const Config* spectrum, bool overwrite) {
  root_succeeds(Communicator::world(), [&] {  // the catalogue is on rank 0
    const auto expected = spectrum ? mass_function_of(*spectrum, catalogue.header) : nullptr;
    write_group_files(path, catalogue, expected, provenance("# of particles given in Python\n", device_text()),
                      overwrite);
  });
}

nb::object expected_masses(const Config& config, const SnapshotHeader& header, const Numbers<double>& masses) {
  const auto expected = mass_function_of(config, header);
  std::vector<double> values;
  for (std::size_t i = 0; i < masses.shape(0); ++i) values.push_back(expected(masses.data()[i]));
  return array_of(std::move(values));
}

}  // namespace

void bind_groups(nb::module_& module) {
  using Vector = std::array<double, 3>;
  nb::class_<GroupCatalogue>(module, "Groups",
                             "Friends-of-friends groups, the longest first; arrays have a row for each.")
      .def_ro("header", &GroupCatalogue::header, "Of the snapshot.")
      .def_ro("linking_length", &GroupCatalogue::linking_length, "In mean distances between particles.")
      .def_ro("minimum", &GroupCatalogue::minimum)
      .def_prop_ro("length", column<std::uint64_t>(&FofGroup::length), "Particles.")
      .def_prop_ro("mass", column<double>(&FofGroup::mass), "In mass units.")
      .def_prop_ro("position", column<Vector>(&FofGroup::position), "Of the deepest particle, length units, comoving.")
      .def_prop_ro("deepest_id", column<std::uint64_t>(&FofGroup::deepest_id), "That particle's.")
      .def_prop_ro("velocity", column<Vector>(&FofGroup::velocity), "Mean, peculiar, velocity units.")
      .def_prop_ro("centre_of_mass", column<Vector>(&FofGroup::centre_of_mass))
      .def_prop_ro("offset", column<double>(&FofGroup::offset), "From the position to the centre of mass.")
      .def_prop_ro("velocity_dispersion", column<double>(&FofGroup::velocity_dispersion), "On one axis.")
      .def_prop_ro(
          "sphere_mass", [](const GroupCatalogue& c) { return spheres(c, &Overdensity::mass); },
          "By name (Mean200, Crit200, Crit500, TopHat200): mass within the sphere about the position.")
      .def_prop_ro("sphere_radius", [](const GroupCatalogue& c) { return spheres(c, &Overdensity::radius); })
      .def_prop_ro("v_max", column<double>(&FofGroup::v_max), "Largest circular velocity.")
      .def_prop_ro("v_max_radius", column<double>(&FofGroup::v_max_radius))
      .def_prop_ro("spin", column<double>(&FofGroup::spin), "Bullock et al. 2001, of the Crit200 sphere.")
      .def_prop_ro("concentration", column<double>(&FofGroup::concentration), "0 where unknown.")
      .def_prop_ro("member_ids", view_of(&GroupCatalogue::member_ids),
                   "Of the groups one after another, the most bound first.")
      .def("__len__", [](const GroupCatalogue& catalogue) { return catalogue.groups.size(); })
      .def("__repr__", [](const GroupCatalogue& catalogue) { return "<maki.Groups: " + summary_of(catalogue) + ">"; });
  module.def(
      "groups",
      [](const Snapshot& set, double linking_length, std::uint64_t minimum) {
        return find(set, {linking_length, minimum});
      },
      "set"_a, "linking_length"_a, "minimum"_a);
  module.def("write_groups", &write, "groups"_a, "path"_a, "spectrum"_a.none(), "overwrite"_a,
             nb::call_guard<Computing>());
  module.def("expected_masses", &expected_masses, "config"_a, "header"_a, "masses"_a);
}

}  // namespace maki::python
