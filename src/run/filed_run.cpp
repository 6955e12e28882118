#include "src/run/filed_run.hpp"

#include <utility>

#include "host/comm/job.hpp"
#include "kernels/device/memory.hpp"
#include "src/config/parse.hpp"
#include "src/run/build.hpp"

namespace maki {
namespace {

// Prepares the initial conditions of this site's slab, on its ranks, once all sites are there.
void take_share(Prepared& run, const Config& config, sites::Sites& sites, const Communicator& ranks) {
  const bool unmade = config.run.kind == RunKind::kCosmology && config.initial.kind != InitialKind::kFile;
  at_all_sites(sites, [&] {
    if (unmade) run = prepare(config);
  });
  keep_own_slab(run, sites, ranks);
}

}  // namespace

std::unique_ptr<FiledRun> FiledRun::begin(Config config, const Options& options) {
  const ThisSite site = choose_site(config, options.site);
  const Communicator ranks = Communicator::world();
  use_device(config);
  const Admission admission = admit(config, ranks);
  Prepared prepared = prepare(config, !site.over_sites());
  if (site.over_sites()) first_slabs(prepared, site.count);
  OpenSites ring = open_sites(prepared.config, site, ranks, {}, announcer(config));
  return start(config, std::move(prepared), admission, std::move(ring), options);
}

std::unique_ptr<FiledRun> FiledRun::start(const Config& config, Prepared prepared, const Admission& admission,
                                          OpenSites ring, const Options& options) {
  const Communicator ranks = Communicator::world();
  std::unique_ptr<FiledRun> run(new FiledRun);
  run->ring_ = std::move(ring);
  if (run->ring_.sites->count() > 1) take_share(prepared, config, *run->ring_.sites, ranks);
  const RunPlace place{ranks, *run->ring_.sites};
  at_all_sites(*run->ring_.sites, [&] {
    RunFileOptions files = run_file_options(prepared, run->ring_.run, chosen_lines(config));
    options.apply(files);
    run->files_.emplace(files, provenance(to_toml(prepared.config), device_text()), prepared, place);
  });
  run->introduce(prepared, admission, ranks);
  const SimulationOptions numbers = simulation_options(prepared, admission);
  run->simulation_.emplace(*run->stream_, std::move(prepared.initial), numbers, timeline_of(prepared), *run->files_,
                           place);
  return run;
}

// The first lines of the log; memory is watched, and there is a stream, from here on.
void FiledRun::introduce(const Prepared& run, const Admission& admission, const Communicator& ranks) {
  if (ranks.size() > 1) files_->message(describe_ranks(ranks));
  for (const auto& lines : {ring_.describe(), summary(run), admission.notes})
    for (const std::string& line : lines) files_->message(line);
  pool_watch({{"mesh.", "fft."}});
  device_ = device_of(run.config);
  stream_.emplace();
}

int FiledRun::run() { return finish(simulation_->run()); }

int FiledRun::finish(const RunResult& result) {
  files_->finish(result, simulation_->timers());
  files_->report();
  files_->let_go();
  return leave_sites(ring_, result);
}

}  // namespace maki
