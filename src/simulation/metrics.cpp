#include "src/simulation/metrics.hpp"

#include <fmt/format.h>

#include <cmath>

namespace maki {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

class JsonObject {
 public:
  JsonObject& raw(const char* key, const std::string& value) {
    text_ += fmt::format("{}\"{}\": {}", text_.empty() ? "" : ", ", key, value);
    return *this;
  }
  JsonObject& add(const char* key, double value) {
    return raw(key, std::isfinite(value) ? fmt::format("{:.9g}", value) : "null");
  }
  JsonObject& add(const char* key, std::uint64_t value) { return raw(key, fmt::format("{}", value)); }
  JsonObject& add(const char* key, bool value) { return raw(key, value ? "true" : "false"); }
  JsonObject& add(const char* key, const std::string& value) { return raw(key, quoted(value)); }
  std::string text() const { return '{' + text_ + '}'; }

 private:
  std::string text_;
};

void add_phases(JsonObject& phases, const PhaseTimers::Node& node, const std::string& path) {
  for (const auto& child : node.children) {
    const std::string name = path.empty() ? child->name : path + '/' + child->name;
    if (child->seconds > 0) phases.raw(name.c_str(), fmt::format("{:.6f}", child->seconds));
    add_phases(phases, *child, name);
  }
}

void add_gravity(JsonObject& line, const GravityCounts& counts) {
  line.add("rebuilt", counts.rebuilt)
      .add("interactions", counts.interactions)
      .add("mean_list", counts.mean_list)
      .add("longest_list", counts.longest_list)
      .add("groups", counts.groups)
      .add("fill", counts.mean_fill)
      .add("rewalked", counts.rewalked_groups)
      .add("redone", counts.redone_groups)
      .add("probe_error", counts.probe_error)
      .add("fresh_error", counts.fresh_error);
}

}  // namespace

std::string to_json(const StepMetrics& metrics, const PhaseTimers& timers) {
  JsonObject line;
  line.add("step", metrics.step);
  if (metrics.comoving)
    line.add("a", metrics.time).add("z", 1 / metrics.time - 1).add("dt", metrics.dt).add("dlna", metrics.dlna);
  else
    line.add("t", metrics.time).add("dt", metrics.dt);
  line.add("long", metrics.long_step_end)
      .add("substep", static_cast<std::uint64_t>(metrics.substep))
      .add("particles", static_cast<std::uint64_t>(metrics.particles))
      .add("max_acceleration", metrics.max_acceleration)
      .add("rms_momentum", metrics.rms_momentum);
  add_gravity(line, metrics.gravity);
  if (metrics.energy) {
    line.add("kinetic", metrics.energy->kinetic).add("potential", metrics.energy->potential);
    if (metrics.comoving) line.add("layzer_irvine_integral", metrics.energy->integral);
    line.add("energy_error", metrics.energy->error)
        .add("momentum_drift", metrics.momentum_drift)
        .add("force_residual", metrics.force_residual);
  }
  JsonObject phases;
  add_phases(phases, timers.root(), "");
  line.add("memory_high_water", static_cast<std::uint64_t>(metrics.memory_high_water))
      .raw("seconds", fmt::format("{:.6f}", metrics.seconds))
      .raw("elapsed", fmt::format("{:.3f}", metrics.elapsed))
      .raw("phases", phases.text());
  return line.text();
}

std::string to_json(const Provenance& provenance) {
  JsonObject inner;
  inner.add("version", provenance.version)
      .add("git_hash", provenance.git_hash)
      .add("compiler", provenance.compiler)
      .add("device", provenance.device)
      .add("configuration", provenance.configuration);
  return JsonObject().raw("provenance", inner.text()).text();
}

}  // namespace maki
