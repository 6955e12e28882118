// Groups of friends.
#include "src/groups/catalogue.hpp"

#include "src/python/bind.hpp"
#include "src/run/build.hpp"
#include "src/run/group_files.hpp"
#include "src/run/linear_theory.hpp"
#include "src/run/loaded_set.hpp"

namespace maki::python {
namespace {

GroupCatalogue find(const Snapshot& set, const GroupOptions& options) {
  std::vector<std::string> notes;
  LoadedSet loaded(checked(set, notes), "particles given in Python", Communicator::world());
  return find_groups(loaded.stream(), loaded.ranks(), loaded.particles(), loaded.frame(), loaded.header(), options);
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
  const auto expected = spectrum ? mass_function_of(*spectrum, catalogue.header) : nullptr;
  write_group_files(path, catalogue, expected.get(), provenance("# of particles given in Python\n", device_text()),
                    overwrite);
}

nb::object expected_masses(const Config& config, const SnapshotHeader& header, const Numbers<double>& masses) {
  const auto expected = mass_function_of(config, header);
  std::vector<double> values;
  for (std::size_t i = 0; i < masses.shape(0); ++i) values.push_back((*expected)(masses.data()[i]));
  return array_of(std::move(values));
}

}  // namespace

void bind_groups(nb::module_& module) {
  using Vector = std::array<double, 3>;
  nb::class_<GroupCatalogue>(module, "Groups", "Groups of friends, the longest first; arrays have a row for each.")
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
      .def_prop_ro(
          "member_ids", [](nb::handle_t<GroupCatalogue> c) { return view(nb::cast<GroupCatalogue&>(c).member_ids, c); },
          "Of the groups one after another, the most bound first.")
      .def("__len__", [](const GroupCatalogue& catalogue) { return catalogue.groups.size(); })
      .def("__repr__", [](const GroupCatalogue& catalogue) { return "<maki.Groups: " + summary_of(catalogue) + ">"; });
  module.def(
      "groups",
      [](const Snapshot& set, double linking_length, std::uint64_t minimum) {
        return find(set, {linking_length, minimum});
      },
      "set"_a, "linking_length"_a, "minimum"_a, nb::call_guard<Computing>());
  module.def("write_groups", &write, "groups"_a, "path"_a, "spectrum"_a.none(), "overwrite"_a,
             nb::call_guard<Computing>());
  module.def("expected_masses", &expected_masses, "config"_a, "header"_a, "masses"_a);
}

}  // namespace maki::python
