// The Python module maki._core: the functions of src/. The names for users are in maki/__init__.py.
#include "build_info.hpp"
#include "kernels/device/device.hpp"
#include "kernels/error.hpp"
#include "src/python/bind.hpp"
#include "src/run/build.hpp"

NB_MODULE(_core, module) {
  using namespace maki::python;
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
