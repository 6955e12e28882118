// Runs, step by step.
#include "src/simulation/simulation.hpp"
#include "src/run/run_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kernels/device/device.hpp"
#include "src/config/keys.hpp"
#include "src/config/parse.hpp"
#include "src/python/bind.hpp"
#include "src/run/filed_run.hpp"

namespace maki::python {
namespace {

// Keeps the messages of a run without files.
class Listener : public RunObserver {
 public:
  void message(const std::string& text) override { messages_.push_back(text); }
  std::vector<std::string> take() { return std::exchange(messages_, {}); }

 private:
  std::vector<std::string> messages_;
};

// An answer of the callbacks, and its reason. Numbers as in maki/simulation.py: 0, go on; 1, stop; 2, an exception.
using Answer = std::pair<std::uint64_t, std::string>;
constexpr std::uint64_t kException = 2;

// The greatest answer of all ranks, with the reason of the lowest rank that has it; the reason names that rank where
// answers differ. Collective.
Answer agreed(const Communicator& ranks, const Answer& own) {
  if (ranks.size() == 1) return own;
  const auto size = static_cast<std::uint64_t>(ranks.size()), rank = static_cast<std::uint64_t>(ranks.rank());
  std::array<std::uint64_t, 2> extremes = {own.first * size + (size - 1 - rank), kException - own.first};
  ranks.max(extremes);
  const std::uint64_t greatest = extremes[0] / size, first = size - 1 - extremes[0] % size;
  if (greatest == 0) return {};
  const std::string reason = broadcast_text(ranks, own.second, static_cast<int>(first));
  const bool alike = greatest == kException - extremes[1];
  return {greatest, alike ? reason : fmt::format("{} of rank {}", reason, first)};
}

// A run in memory, or one with its output directory.
class AnyRun {
  // Does a part of the run. After an error only the state can be looked at.
  template <class Part>
  auto part(Part&& part) {
    if (!error_.empty()) throw Error(fmt::format("the run had an error ({})", error_), "", after_error_);
    try {
      return filed_ ? filed_->logged(part) : part();
    } catch (const std::exception& error) {
      error_ = error.what();
      if (filed_) filed_->close_files();
      throw;
    }
  }

 public:
  // Both use the selected device.
  explicit AnyRun(std::unique_ptr<FiledRun> run) : device_(run->device()), filed_(std::move(run)) {
    after_error_ =
        fmt::format("maki.resume('{}') goes on from its last restart, if it has one", filed_->files().directory());
  }
  AnyRun(Prepared run, const Admission& admission) : device_(device_of(run.config)) {
    listener_ = std::make_unique<Listener>();
    for (const auto& notes : {run.notes, admission.notes})
      for (const std::string& note : notes) listener_->message(note);
    const SimulationOptions options = simulation_options(run, admission);
    stream_.emplace();
    simulation_.emplace(*stream_, std::move(run.initial), options, timeline_of(run), *listener_,
                        RunPlace{Communicator::world()});
  }

  Simulation& simulation() { return filed_ ? filed_->simulation() : *simulation_; }
  // On the device and threads of this run, for Computing.
  Simulation& on_device() {
    select_device(device_, threads_);
    return simulation();
  }
  const Simulation& simulation() const { return const_cast<AnyRun*>(this)->simulation(); }
  std::vector<std::string> messages() { return listener_ ? listener_->take() : std::vector<std::string>{}; }
  void begin() {
    part([&] { on_device().begin(); });
  }
  bool step(double until) {
    simulation().check_moment(until);  // no error of the run
    return part([&] {
      const bool more = on_device().step(until);
      // So that the caller finds the files of an output complete.
      if (filed_ && !simulation().within_long_step()) filed_->files().settle_snapshot();
      return more;
    });
  }
  // Asks for the end of the call that makes the present long step, from a handler of a signal.
  void leave_long_step() { leaves_ = true; }
  bool leaves() { return std::exchange(leaves_, false); }
  void stop(const std::string& reason) {
    part([&] { on_device().stop(reason); });
  }
  RunResult finish() {
    return part([&] {
      const RunResult result = on_device().finish();
      if (filed_) filed_->finish(result);
      return result;
    });
  }
  // What all ranks answer; collective.
  Answer agree(std::uint64_t answer, const std::string& reason) const { return agreed(callbacks_, {answer, reason}); }
  // Throws Error where an error came within a step, whose state is neither that before nor that after it.
  void require_whole() const {
    if (simulation().broke_off())
      throw Error(fmt::format("the run had an error within a step ({})", error_), "its particles are on the way",
                  after_error_);
  }
  bool ended() const { return error_.empty() && simulation().ended(); }
  RunResult result() const {
    RunResult result = simulation().so_far();
    if (!error_.empty()) result.stopped_by = "an error";
    return result;
  }

 private:
  int device_, threads_ = thread_count();
  // For answers alone: a callback that threw may have left out calls that it makes on other ranks.
  Communicator callbacks_ = Communicator::world().split(0, Communicator::world().rank());
  bool leaves_ = false;
  std::string error_;  // of a part of the run
  std::string after_error_ = "begin the run again";
  std::unique_ptr<FiledRun> filed_;
  std::unique_ptr<Listener> listener_;
  std::optional<Stream> stream_;
  std::optional<Simulation> simulation_;
};

FiledRun::Options options_of(bool quiet) {
  FiledRun::Options options;
  options.progress = quiet ? nullptr : stdout;
  // Python's own handlers work for one process; many ranks have to stop at the same step, as with the run's handlers.
  options.signals = Communicator::world().size() > 1;
  options.over_sites = false;
  return options;
}

std::unique_ptr<AnyRun> run_in_memory(const Config& config, const Snapshot* set) {
  const Computing computing;
  require_same_settings(lines_of_all_sites(config));
  require_one_site(config);
  const Communicator ranks = Communicator::world();
  use_device(config);
  if (!set) {
    const Admission admission = admit(config, ranks);
    return std::make_unique<AnyRun>(prepare(config), admission);
  }
  const Admission admission = admit(config, ranks, sum_of(ranks, std::uint64_t{set->size()}));
  std::vector<std::string> notes;
  Prepared run = prepare(config, checked(*set, notes, ranks), ranks);
  run.notes.insert(run.notes.begin(), notes.begin(), notes.end());
  return std::make_unique<AnyRun>(std::move(run), admission);
}

std::unique_ptr<AnyRun> run_with_files(const Config& config, bool quiet) {
  const Computing computing;
  std::vector<std::string> lines = lines_of_all_sites(config);
  lines.push_back("run.output_directory = " + output_directory(config));
  require_same_settings(lines);
  return std::make_unique<AnyRun>(FiledRun::begin(config, options_of(quiet)));
}

// Whether a setting "key=value" may differ between ranks, as between sites.
bool is_own(const std::string& setting) {
  const std::string name = setting.substr(0, setting.find('='));
  return std::ranges::any_of(config_keys(),
                             [&](const Key& key) { return key.of_site && (key.path() == name || key.name == name); });
}

std::unique_ptr<AnyRun> resume(const std::string& directory, const std::vector<std::string>& settings, bool quiet) {
  const Computing computing;
  std::vector<std::string> shared = settings;
  std::erase_if(shared, is_own);
  require_same_settings({fmt::format("maki.resume('{}', {})", directory, fmt::join(shared, ", "))});
  FiledRun::Options options = options_of(quiet);
  auto run = FiledRun::resume(directory, settings, options, "keywords");
  if (!run)
    throw Error(fmt::format("the run in '{}' has come to its end", directory), "",
                "give it a later end (end_redshift=..., end_time=...), or name the restart to go on from");
  return std::make_unique<AnyRun>(std::move(run));
}

// Python's handlers of signals run after each step; over ranks, which have to leave a long step together, at its end.
bool long_step(AnyRun& run, double until) {
  const Simulation& simulation = std::as_const(run).simulation();
  run.leaves();
  for (;;) {
    const double before = simulation.time();
    bool more = false;
    {
      const Computing computing;
      more = run.step(until);
    }
    const bool ends = !more || !simulation.within_long_step() || !(simulation.time() > before);
    if ((ends || Communicator::world().size() == 1) && PyErr_CheckSignals() != 0) throw nb::python_error();
    if (ends || run.leaves()) return more;
  }
}

Snapshot snapshot(AnyRun& run) {
  const Computing computing;
  run.require_whole();
  run.on_device().synchronise();
  Snapshot set = run.simulation().snapshot();
  sort_by_id(set);
  return set;
}

}  // namespace

void bind_simulation(nb::module_& module) {
  module.def("ranks", [] { return Communicator::world().size(); });
  nb::class_<EnergyReport>(module, "Energy", "In mass unit velocity unit^2; potential: sum m phi / (2 a).")
      .def_ro("kinetic", &EnergyReport::kinetic)
      .def_ro("potential", &EnergyReport::potential)
      .def_ro("error", &EnergyReport::error, "Of the energy, or of the Layzer-Irvine equation, relative.")
      .def("__repr__", [](const EnergyReport& e) {
        return fmt::format("<maki.Energy: kinetic {:.6g}, potential {:.6g}, error {:.2e}>", e.kinetic, e.potential,
                           e.error);
      });
  nb::class_<RunResult>(module, "Result", "What a run came to.")
      .def_ro("stopped_by", &RunResult::stopped_by, "'' where the end was reached.")
      .def_ro("time", &RunResult::time, "Scale factor, or time.")
      .def_ro("steps", &RunResult::steps)
      .def_ro("rebuilds", &RunResult::rebuilds, "Steps with a new tree.")
      .def_ro("long_steps", &RunResult::long_steps)
      .def_ro("particles", &RunResult::particles)
      .def_ro("energy", &RunResult::energy, "The last one computed, or None.")
      .def_ro("worst_energy_error", &RunResult::worst_energy_error)
      .def("__repr__", [](const RunResult& result) {
        return fmt::format("<maki.Result: {} steps{}>", result.steps,
                           result.stopped_by.empty() ? "" : ", stopped by " + result.stopped_by);
      });
  nb::class_<AnyRun>(module, "Run")
      .def("begin", &AnyRun::begin, nb::call_guard<Computing>())
      .def("long_step", &long_step, "until"_a)
      .def("leave_long_step", &AnyRun::leave_long_step)
      .def("stop", &AnyRun::stop, "reason"_a, nb::call_guard<Computing>())
      .def("finish", &AnyRun::finish, nb::call_guard<Computing>())
      .def("snapshot", &snapshot)
      .def("messages", &AnyRun::messages)
      .def("agree", &AnyRun::agree, "answer"_a, "reason"_a, nb::call_guard<Computing>())
      .def_prop_ro("time", [](const AnyRun& run) { return run.simulation().time(); })
      .def_prop_ro("comoving", [](const AnyRun& run) { return run.simulation().frame().periodic; })
      .def_prop_ro("ended", &AnyRun::ended)
      .def_prop_ro("result", &AnyRun::result);
  module.def("run_in_memory", &run_in_memory, "config"_a, "set"_a.none());
  module.def("run_with_files", &run_with_files, "config"_a, "quiet"_a);
  module.def("resume", &resume, "directory"_a, "settings"_a, "quiet"_a);
}

}  // namespace maki::python
