// The Python module maki._core: the functions of src/ as they are. What they are called by users is in maki/__init__.py.
#include "build_info.hpp"
#include "kernels/device/device.hpp"
#include "kernels/error.hpp"
#include "src/python/bind.hpp"
#include "src/run/build.hpp"

NB_MODULE(_core, module) {
  using namespace maki::python;
  // Before the class that it is a special case of: the last one that is registered is tried first.
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
