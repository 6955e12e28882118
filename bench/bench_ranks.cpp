// Strong scaling of the step over ranks: the whole step and its phases, on a rebuild step and on a reuse step, of the
// set of a configuration. Under mpirun or srun it measures that job. Alone it starts jobs of itself by mpirun, in turn
// and several times so that the machine's moods meet all alike: one rank of one thread, one of two, two of one each.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <array>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "bench/report.hpp"
#include "bench/timed_step.hpp"
#include "host/comm/job.hpp"
#include "kernels/error.hpp"
#include "src/config/parse.hpp"
#include "src/run/run_options.hpp"
#include "src/run/setup.hpp"
#include "src/simulation/frame.hpp"

namespace {

using namespace maki;

struct Options {
  std::string config = "configs/cosmo_128.toml", json;
  std::vector<std::string> settings;
  int repeat = 3, rounds = 2, threads = 0;
};

// By "rebuild step/tree/walk": the longest over ranks, and of several repetitions the least.
using bench::Times, bench::keep_least;

// Ranks may have phases that others have not: those of rank 0 count.
void take_longest(const Communicator& ranks, Times& times) {
  std::string names;
  for (const auto& [name, seconds] : times) names += name + "\n";
  std::vector<std::string> all;
  std::istringstream lines(broadcast_text(ranks, names));
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  std::vector<double> seconds;
  for (const std::string& name : all) seconds.push_back(times.contains(name) ? times[name] : 0);
  ranks.max(seconds);
  times.clear();
  for (std::size_t i = 0; i < all.size(); ++i) times[all[i]] = seconds[i];
}

constexpr int kSettling = 4;  // rebuilds until boundaries follow the work

class Measurement {
 public:
  Measurement(const Options& options, const Communicator& ranks)
      : ranks_(ranks), setup_(prepare(load_config(options.config, options.settings), true, ranks)),
        gravity_(gravity_options(setup_), timers_, ranks) {
    load_particles(stream_, setup_.initial, make_frame(setup_.initial.header, setup_.side, setup_.centre), particles_);
    setup_.initial = {};
    bench::evaluate(stream_, gravity_, particles_);
    for (int i = 0; i < kSettling; ++i) {
      gravity_.request_rebuild();
      bench::evaluate(stream_, gravity_, particles_);
    }
  }

  std::uint64_t particles() const { return setup_.particles; }

  Times run(int repeat) {
    Times least;
    for (int i = 0; i < repeat; ++i) {
      gravity_.request_rebuild();
      keep_least(least, step("rebuild step"));
      const Times kept = step("reuse step");
      if (!gravity_.counts().rebuilt) keep_least(least, kept);
    }
    return least;
  }

 private:
  Times step(const std::string& name) {
    Times times;
    times[name] = bench::timed_step(stream_, ranks_, gravity_, particles_, timers_);
    bench::read_phases(timers_, name + "/", times);
    take_longest(ranks_, times);
    return times;
  }

  Communicator ranks_;
  Stream stream_;
  PhaseTimers timers_;
  Prepared setup_;
  Particles particles_;
  Gravity gravity_;
};

// One job: rank 0 prints "seconds name" for each, behind a line of words for people.
void measure(const Options& options, const Communicator& ranks) {
  select_device(usual_device(ranks), options.threads > 0 ? options.threads : usual_threads());
  Measurement measurement(options, ranks);
  const Times times = measurement.run(options.repeat);
  const std::string described = describe_ranks(ranks);
  if (ranks.rank() > 0) return;
  fmt::print("{} particles, {}, {} threads each\n", measurement.particles(), described, thread_count());
  bench::Report report("ranks", options.json);
  for (const auto& [name, seconds] : times) {
    fmt::print("{:.6f} {}\n", seconds, name);
    report.add(name, seconds, "s");
  }
  report.write();
}

struct Case {
  int ranks, threads;
  Times times = {};
};

void run_job(const std::string& program, const Options& options, Case& job) {
  const auto beside = std::filesystem::path(program).parent_path() / "mpirun";  // of a bundle, or not that on PATH
  std::string command = fmt::format(
      "OMP_NUM_THREADS={} {}{} --oversubscribe --bind-to none -n {} {} --threads {} "
      "--repeat {} --config {}",
      job.threads, std::filesystem::exists(beside) ? beside.string() : "mpirun",
      geteuid() == 0 ? " --allow-run-as-root" : "", job.ranks, program, job.threads, options.repeat, options.config);
  for (const std::string& setting : options.settings) command += " --set '" + setting + "'";
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw Error("no job was started", command);
  std::array<char, 512> line;
  Times times;
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    std::istringstream words(line.data());
    double seconds = 0;
    std::string name;
    if (words >> seconds && std::getline(words >> std::ws, name)) times[name] = seconds;
    if (std::string(line.data()).find(" particles, ") != std::string::npos) times.clear();
  }
  if (pclose(pipe) != 0 || times.empty()) throw Error("a job failed", command);
  keep_least(job.times, times);
}

void print_scaling(const std::array<Case, 3>& jobs, const std::string& json) {
  bench::Report report("ranks", json);
  fmt::print("{:<34} {:>9} {:>9} {:>9} {:>11} {:>9}\n", "seconds", "1 x 1", "1 x 2", "2 x 1", "efficiency", "to 1 x 2");
  const auto of = [](const Case& job, const std::string& name) {
    return job.times.contains(name) ? job.times.at(name) : 0.0;
  };
  for (const auto& [name, seconds] : jobs[2].times) {
    if (seconds == 0) continue;
    const double one = of(jobs[0], name), threads = of(jobs[1], name);
    if (one > 0) {
      fmt::print("{:<34} {:>9.4f} {:>9.4f} {:>9.4f} {:>11.3f} {:>9.3f}\n", name, one, threads, seconds,
                 one / (2 * seconds), threads / seconds);
    } else {  // only where there are several ranks
      fmt::print("{:<34} {:>9} {:>9} {:>9.4f}\n", name, "", "", seconds);
    }
    const bool whole = name.find('/') == std::string::npos;
    report.add(name + ", 1 rank x 1 thread", one, "s");
    report.add(name + ", 1 rank x 2 threads", threads, "s");
    report.add(name + ", 2 ranks x 1 thread", seconds, "s");
    if (whole) report.add(name + ", efficiency of 2 ranks", one / (2 * seconds), "");
  }
  report.write();
}

void scale(const std::string& program, const Options& options) {
  std::array<Case, 3> jobs{{{1, 1}, {1, 2}, {2, 1}}};
  for (int round = 0; round < options.rounds; ++round) {
    for (Case& job : jobs) run_job(program, options, job);
  }
  fmt::print(
      "{}: ranks x threads; the longest over ranks, the least of {} x {} steps; efficiency = half of 1 x 1 over "
      "2 x 1\n",
      options.config, options.rounds, options.repeat);
  print_scaling(jobs, options.json);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Strong scaling of the step over ranks");
  app.add_option("--config", o.config, "the configuration whose set is taken");
  app.add_option("--set", o.settings, "key=value for the configuration");
  app.add_option("--repeat", o.repeat, "steps of each kind in a job");
  app.add_option("--rounds", o.rounds, "jobs of each kind");
  app.add_option("--threads", o.threads, "of each rank, under a launcher");
  app.add_option("--json", o.json);
  CLI11_PARSE(app, argc, argv);
  try {
    const Communicator ranks = Communicator::world();
    if (under_mpi()) {
      measure(o, ranks);
    } else {
      scale(std::filesystem::read_symlink("/proc/self/exe").string(), o);
    }
  } catch (const std::exception& e) {
    abort_job(std::string("bench_ranks: ") + e.what());
  }
}
