// Forces and potentials of given particles, on themselves and at points.
#include "src/run/forces.hpp"

#include <numeric>

#include "kernels/error.hpp"
#include "src/python/bind.hpp"

namespace maki::python {
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

nb::object forces(const Snapshot& set, const Config& config, const std::string& method,
                  const std::optional<Vectors<double>>& points) {
  SetForces result;
  std::vector<std::string> notes;
  {
    const Computing computing;
    const ForceMethod chosen = method_of(method);
    use_device(config);
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

}  // namespace maki::python
