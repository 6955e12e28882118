// Power spectra and pictures.
#include "src/run/products.hpp"

#include "src/python/bind.hpp"
#include "src/run/loaded_set.hpp"

namespace maki::python {
namespace {

const char* const kOrigin = "particles given in Python";

LoadedSet load(const Snapshot& set) {
  std::vector<std::string> notes;
  return {checked(set, notes), kOrigin, Communicator::world()};
}

PowerTable power(const Snapshot& set, int mesh, int folding, const std::optional<std::string>& path, bool overwrite) {
  const Computing computing;
  const LoadedSet loaded = load(set);
  SpectrumOptions options{mesh, folding};
  if (options.cells == 0) options.cells = default_power_mesh(particles_of_all(loaded.set()));
  const PowerTable table = power_of(loaded.set(), options);
  if (path && loaded.ranks().rank() == 0)
    write_power_file(*path, table, loaded.header(), loaded.provenance(), overwrite);
  return table;
}

PictureOptions fitted(PictureOptions options, const LoadedSet& loaded) {
  if (options.width == 0 && !loaded.frame().periodic) options.width = loaded.frame().side / 2;  // where the set lies
  return options;
}

nb::object image(const Snapshot& set, const PictureOptions& options) {
  std::vector<float> density;
  {
    const Computing computing;
    const LoadedSet loaded = load(set);
    density = picture_of(loaded.set(), fitted(options, loaded));
  }
  if (density.empty()) return nb::none();  // on ranks above 0
  const auto side = static_cast<std::size_t>(options.pixels);
  return array_of<float>(std::move(density), {side, side});
}

void write_image_file(const Snapshot& set, const std::string& path, const PictureOptions& options, bool overwrite) {
  const Computing computing;
  const LoadedSet loaded = load(set);
  write_picture_of(loaded.set(), fitted(options, loaded), path, loaded.provenance(), overwrite);
}

}  // namespace

void bind_products(nb::module_& module) {
  nb::class_<PowerTable>(module, "Power", "A power spectrum, by bin; shot noise is not taken off.")
      .def_prop_ro(
          "k", [](nb::handle_t<PowerTable> t) { return view(nb::cast<PowerTable&>(t).k, t); },
          "Wave numbers, radians per length unit: the means over the modes of the bins.")
      .def_prop_ro(
          "power", [](nb::handle_t<PowerTable> t) { return view(nb::cast<PowerTable&>(t).power, t); },
          "P(k), length unit^3.")
      .def_prop_ro(
          "modes", [](nb::handle_t<PowerTable> t) { return view(nb::cast<PowerTable&>(t).modes, t); },
          "Fourier modes in the bin.")
      .def_prop_ro(
          "folding", [](nb::handle_t<PowerTable> t) { return view(nb::cast<PowerTable&>(t).folding, t); },
          "Times that the box was folded onto the mesh, by bin.")
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

}  // namespace maki::python
