#include "src/simulation/run_state.hpp"

#include <fmt/format.h>

#include "kernels/error.hpp"

namespace maki {

namespace {

// Calls visit(name, field) for all fields: one list for both ways.
template <class Visit, class State>
void visit_header(Visit& visit, State& s) {
  visit("header.comoving", s.header.comoving);
  visit("header.time", s.header.time);
  visit("header.redshift", s.header.redshift);
  visit("header.box_size", s.header.box_size);
  visit("header.omega0", s.header.omega0);
  visit("header.omega_lambda", s.header.omega_lambda);
  visit("header.omega_baryon", s.header.omega_baryon);
  visit("header.hubble", s.header.hubble);
  visit("header.gravitational_constant", s.header.gravitational_constant);
  visit("units.length_cgs", s.header.units.length_cgs);
  visit("units.mass_cgs", s.header.units.mass_cgs);
  visit("units.velocity_cgs", s.header.units.velocity_cgs);
  visit("units.with_h", s.header.units.with_h);
  visit("frame.side", s.frame.side);
  visit("frame.gravitational_constant", s.frame.gravitational_constant);
  visit("frame.corner", s.frame.corner);
  visit("frame.doublings", s.frame.doublings);
  visit("frame.periodic", s.frame.periodic);
}

template <class Visit, class Measure>
void visit_measure(Visit& visit, const std::string& name, Measure& m) {
  visit(name + ".acceleration", m.acceleration);
  visit(name + ".max_momentum", m.max_momentum);
  visit(name + ".rms_momentum", m.rms_momentum);
  visit(name + ".rms_acceleration", m.rms_acceleration);
}

template <class Visit, class Part>
void visit_part(Visit& visit, const std::string& name, Part& part) {
  visit(name + ".acceleration", part.acceleration);
  visit(name + ".max_momentum", part.max_momentum);
  visit(name + ".mean_square_momentum", part.mean_square_momentum);
  visit(name + ".mean_square_acceleration", part.mean_square_acceleration);
}

template <class Visit, class State>
void visit_forces(Visit& visit, State& s) {
  visit("integrator.time", s.integrator.time);
  visit("integrator.short_kicked_to", s.integrator.short_kicked_to);
  visit("integrator.long_kicked_to", s.integrator.long_kicked_to);
  visit("integrator.long_begin", s.integrator.long_begin);
  visit("integrator.has_potential", s.integrator.has_potential);
  visit_measure(visit, "integrator.before_last", s.integrator.decisive);
  visit_part(visit, "integrator.told_last", s.integrator.sent_last);
  visit_part(visit, "integrator.told_before", s.integrator.sent_before);
  visit("field.softening", s.field.softening);
  visit("field.total", s.field.total);
  visit("field.escapers", s.field.escapers);
  visit("field.escaped_energy", s.field.escaped_energy);
  visit("field.escaped_momentum", s.field.escaped_momentum);
  visit("slabs", s.slabs);
  visit("drifts.ranks", s.drifts.ranks);
  visit("drifts.ranks_next", s.drifts.ranks_next);
  visit("drifts.sites", s.drifts.sites);
}

template <class Visit, class State>
void visit_records(Visit& visit, State& s) {
  visit("energy.has_start", s.energy.has_start);
  visit("energy.has_kinetic", s.energy.has_kinetic);
  visit("energy.start", s.energy.start);
  visit("energy.integral", s.energy.integral);
  visit("energy.last_a", s.energy.last_a);
  visit("energy.last_kinetic", s.energy.last_kinetic);
  visit("energy.scale", s.energy.scale);
  visit("energy.removed", s.energy.removed);
  visit("result.steps", s.result.steps);
  visit("result.rebuilds", s.result.rebuilds);
  visit("result.long_steps", s.result.long_steps);
  visit("result.worst_energy_error", s.result.worst_energy_error);
  visit("result.momentum_drift", s.result.momentum_drift);
  visit("result.worst_force_residual", s.result.worst_force_residual);
  visit("first_momentum.momentum", s.first_momentum.momentum);
  visit("first_momentum.momentum_scale", s.first_momentum.momentum_scale);
  visit("first_momentum.force", s.first_momentum.force);
  visit("first_momentum.force_scale", s.first_momentum.force_scale);
  visit("removed_energy", s.removed_energy);
  visit("last_kinetic_t", s.last_kinetic_t);
  visit("last_energy_step", s.last_energy_step);
  visit("elapsed", s.elapsed);
  visit("outputs", s.outputs);
  visit("file_time", s.file_time);
}

template <class Visit, class State>
void visit_all(Visit& visit, State& s) {
  visit_header(visit, s);
  visit_forces(visit, s);
  visit_records(visit, s);
}

template <class Visit, class State>
void visit_sample(Visit& visit, State& s) {
  visit("sample.a", s.a);
  visit("sample.with_potential", s.with_potential);
  visit("sample.step", s.step);
  visit("sample.potential_unit", s.potential_unit);
  visit("sample.escaped", s.escaped);
  visit("sample.escaped_momentum", s.escaped_momentum);
  visit("sample.kinetic", s.sums.energy.kinetic);
  visit("sample.potential", s.sums.energy.potential);
  visit("sample.mass", s.sums.energy.mass);
  visit("sample.momentum", s.sums.momentum.momentum);
  visit("sample.momentum_scale", s.sums.momentum.momentum_scale);
  visit("sample.force", s.sums.momentum.force);
  visit("sample.force_scale", s.sums.momentum.force_scale);
}

struct Writer {
  StateNumbers& to;
  void operator()(const std::string& name, double value) { to.reals[name] = {value}; }
  void operator()(const std::string& name, const std::array<double, 3>& v) { to.reals[name] = {v[0], v[1], v[2]}; }
  void operator()(const std::string& name, bool value) { to.counts[name] = {value ? 1u : 0u}; }
  void operator()(const std::string& name, int value) { to.counts[name] = {static_cast<std::uint64_t>(value)}; }
  void operator()(const std::string& name, std::uint64_t value) { to.counts[name] = {value}; }
  void operator()(const std::string& name, const std::vector<std::uint32_t>& values) {
    if (!values.empty()) to.counts[name].assign(values.begin(), values.end());
  }
};

struct Reader {
  const StateNumbers& from;
  template <class T>
  static const std::vector<T>& find(const std::map<std::string, std::vector<T>>& all, const std::string& name,
                                    std::size_t size) {
    const auto at = all.find(name);
    if (at == all.end() || at->second.size() != size)
      throw Error("the restart is damaged", fmt::format("it lacks the number {}", name),
                  "remove it and resume from an earlier one");
    return at->second;
  }
  std::uint64_t count(const std::string& name) const { return find(from.counts, name, 1)[0]; }
  void operator()(const std::string& name, double& value) { value = find(from.reals, name, 1)[0]; }
  void operator()(const std::string& name, std::array<double, 3>& v) {
    const std::vector<double>& values = find(from.reals, name, 3);
    v = {values[0], values[1], values[2]};
  }
  void operator()(const std::string& name, bool& value) { value = count(name) != 0; }
  void operator()(const std::string& name, int& value) { value = static_cast<int>(count(name)); }
  void operator()(const std::string& name, std::uint64_t& value) { value = count(name); }
  void operator()(const std::string& name, std::vector<std::uint32_t>& values) {
    if (const auto at = from.counts.find(name); at != from.counts.end())
      values.assign(at->second.begin(), at->second.end());
  }
};

}  // namespace

StateNumbers to_numbers(const RunState& state) {
  StateNumbers numbers;
  Writer writer{numbers};
  visit_all(writer, state);
  if (state.sample) visit_sample(writer, *state.sample);
  if (state.energy.bulk != 0) writer("energy.bulk", state.energy.bulk);
  if (const std::optional<EnergyReport>& energy = state.result.energy)
    numbers.reals["result.energy"] = {energy->kinetic, energy->potential, energy->integral, energy->error};
  return numbers;
}

RunState from_numbers(const StateNumbers& numbers) {
  RunState state;
  Reader reader{numbers};
  visit_all(reader, state);
  if (numbers.reals.contains("energy.bulk")) reader("energy.bulk", state.energy.bulk);
  if (numbers.counts.contains("sample.step")) visit_sample(reader, state.sample.emplace());
  if (!numbers.reals.contains("result.energy")) return state;
  const std::vector<double>& energy = Reader::find(numbers.reals, "result.energy", 4);
  state.result.energy = EnergyReport{energy[0], energy[1], energy[2], energy[3]};
  return state;
}

}  // namespace maki
