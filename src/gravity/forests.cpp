#include "src/gravity/forests.hpp"

namespace maki {

void Forests::evaluate(const Stream& stream, const Particles& particles, bool fresh, const ForceOutput& out) {
  if (fresh) {
    own_.build(stream, particles);
    own_.make_groups_of(stream, particles, forces_.groups());
    if (forces_.opens_by_error())  // `out` holds the last accelerations
      set_error_scales(stream, {out.acceleration.x, out.acceleration.y, out.acceleration.z},
                       forces_.walk().rms_acceleration, forces_.groups());
  } else {
    own_.refit(stream, particles, forces_.groups());
  }
  send_to_all(imports_, stream, own_, particles, forces_.walk(), fresh);
  forces_.serve(stream, own(particles), fresh, out);
  for (TreeImports* const imports : imports_) {
    imports->take(stream);
    if (!imports->empty()) forces_.serve(stream, imports->sources(particles), fresh, out);
  }
}

void Forests::evaluate_again(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  for (const Sources& sources : all(particles)) {
    forces_.evaluate_kept(stream, sources, out);
    forces_.count_later(stream, sources);
  }
}

std::vector<Sources> Forests::all(const Particles& particles) {
  std::vector<Sources> sources{own(particles)};
  for (TreeImports* const imports : imports_)
    if (!imports->empty()) sources.push_back(imports->sources(particles));
  return sources;
}

}  // namespace maki
