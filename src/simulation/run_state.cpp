#include "src/simulation/run_state.hpp"

#include <fmt/format.h>

#include "kernels/error.hpp"

namespace maki {

namespace {

// The functions below call visit(name, field) for all fields: one list for both ways. The name that FIELD gives is the
// path of the field, so the two cannot disagree.
#define FIELD(path) visit(#path, s.path)

template <class Visit, class State>
void visit_header(Visit& visit, State& s) {
  FIELD(header.comoving), FIELD(header.time), FIELD(header.redshift), FIELD(header.box_size), FIELD(header.omega0);
  FIELD(header.omega_lambda), FIELD(header.omega_baryon), FIELD(header.hubble), FIELD(header.omega_radiation);
  FIELD(header.w0), FIELD(header.wa), FIELD(header.gravitational_constant);
  visit("units.length_cgs", s.header.units.length_cgs), visit("units.mass_cgs", s.header.units.mass_cgs);
  visit("units.velocity_cgs", s.header.units.velocity_cgs), visit("units.with_h", s.header.units.with_h);
  FIELD(frame.side), FIELD(frame.gravitational_constant), FIELD(frame.corner), FIELD(frame.doublings);
  FIELD(frame.periodic);
}

template <class Visit, class Measure>
void visit_measure(Visit& visit, const std::string& name, Measure& m) {
  visit(name + ".acceleration", m.acceleration);
  visit(name + ".max_momentum", m.max_momentum);
  visit(name + ".rms_momentum", m.rms_momentum);
  visit(name + ".rms_acceleration", m.rms_acceleration);
  visit(name + ".typical_acceleration", m.typical_acceleration);
}

template <class Visit, class Part>
void visit_part(Visit& visit, const std::string& name, Part& part) {
  visit(name + ".acceleration", part.acceleration);
  visit(name + ".max_momentum", part.max_momentum);
  visit(name + ".mean_square_momentum", part.mean_square_momentum);
  visit(name + ".mean_square_acceleration", part.mean_square_acceleration);
  visit(name + ".mean_logarithm", part.mean_logarithm);
}

template <class Visit, class State>
void visit_forces(Visit& visit, State& s) {
  FIELD(integrator.time), FIELD(integrator.short_kicked_to), FIELD(integrator.long_kicked_to);
  FIELD(integrator.long_begin), FIELD(integrator.long_end), FIELD(integrator.has_potential);
  visit_measure(visit, "integrator.before_last", s.integrator.decisive);
  visit_part(visit, "integrator.told_last", s.integrator.sent_last);
  visit_part(visit, "integrator.told_before", s.integrator.sent_before);
  FIELD(field.softening), FIELD(field.total), FIELD(field.escapers), FIELD(field.escaped_energy);
  FIELD(field.escaped_momentum), FIELD(slabs), FIELD(drifts.ranks), FIELD(drifts.ranks_next), FIELD(drifts.sites);
}

template <class Visit, class State>
void visit_records(Visit& visit, State& s) {
  FIELD(energy.has_start), FIELD(energy.has_kinetic), FIELD(energy.start), FIELD(energy.integral);
  FIELD(energy.last_a), FIELD(energy.last_kinetic), FIELD(energy.scale), FIELD(energy.removed);
  FIELD(result.steps), FIELD(result.rebuilds), FIELD(result.long_steps), FIELD(result.worst_energy_error);
  FIELD(result.momentum_drift), FIELD(result.worst_force_residual), FIELD(substep);
  FIELD(first_momentum.momentum), FIELD(first_momentum.momentum_scale);
  FIELD(first_momentum.force), FIELD(first_momentum.force_scale);
  FIELD(removed_energy), FIELD(last_kinetic_t), FIELD(last_energy_step), FIELD(elapsed), FIELD(outputs);
  FIELD(file_time);
}

#undef FIELD

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
