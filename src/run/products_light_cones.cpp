// Light cones among the files of a run.
#include <fmt/format.h>

#include <filesystem>

#include "kernels/error.hpp"
#include "src/io/restart_folder.hpp"
#include "src/run/light_cones.hpp"
#include "src/run/products.hpp"
#include "src/run/start_run.hpp"

namespace maki {

void RunProducts::begin_cones(const Prepared& run, const RunFileOptions& options) {
  timeline_ = timeline_of(run);
  const LightConeOptions cones = light_cone_options(run, *timeline_);
  for (std::size_t i = 0; i < cones.observers.size(); ++i) {
    cones_.emplace_back(cones, i, LightCone::Place{light_cone_folder(path(""), i), ranks(), sites()}, provenance_);
    if (options.resumed_at) cones_.back().resume(*options.resumed_at);
  }
}

void RunProducts::drifted(const Drift& drift) {
  for (LightCone& cone : cones_)
    for (const std::string& file : cone.drifted(drift, *timeline_)) message(fmt::format("Light cone: wrote {}", file));
}

// A restart without light cones would be none: it is not begun where their state cannot be written.
void RunProducts::restart(const std::shared_ptr<const KeptState>& kept) {
  const std::uint64_t step = kept->state.result.steps;
  const auto is_kept = [this](std::uint64_t other) {
    return std::filesystem::exists(path(restart_folder::name_of(other)));
  };
  try {
    for (LightCone& cone : cones_) cone.save(step, is_kept);
  } catch (const Error& error) {
    return message(fmt::format("Step {}: there is no restart of it: {}", step, error.what()));
  }
  RunFiles::restart(kept);
}

}  // namespace maki
