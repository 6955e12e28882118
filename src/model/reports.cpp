#include "src/model/reports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include "kernels/error.hpp"

namespace maki::model {
namespace {

std::string cell(const std::string& word) {
  if (word.find_first_of(",\"\n") == std::string::npos) return word;
  std::string quoted = "\"";
  for (const char c : word) quoted.append(c == '"' ? 2 : 1, c);
  quoted += '"';
  return quoted;
}

std::string number(double value) { return fmt::format("{:.4g}", value); }

void add_point(plot::Plot& plot, double x, const std::vector<double>& y) {
  for (std::size_t i = 0; i < y.size(); ++i) plot.lines[i].x.push_back(x), plot.lines[i].y.push_back(y[i]);
}

// Returns what adds a part of a step of `whole` seconds.
auto shares(Report& report, double whole) {
  report.table.heads = {"part", "seconds a step", "share"};
  return [&report, whole](const char* what, double seconds) {
    report.table.rows.push_back({what, number(seconds), fmt::format("{:.1f} %", 100 * seconds / whole)});
  };
}

// Against the rate between sites, 10 MB/s to 10 GB/s: efficiency, seconds of a step and its largest part, by `step`.
Report over_rates(const std::string& title, int sites, Machine machine,
                  const std::function<std::tuple<double, double, const char*>(const Machine&)>& step) {
  Report report;
  const std::string e = fmt::format("E({})", sites);
  report.table.heads = {"MB/s", e, "seconds a step", "most"};
  report.plot = {title, "MB/s between sites", e, true, false, {{e, {}, {}}}};
  for (int i = 0; i <= 24; ++i) {
    machine.network.wan_rate = 1e7 * std::pow(10, i / 8.0);
    const auto [value, seconds, most] = step(machine);
    report.table.rows.push_back(
        {number(1e-6 * machine.network.wan_rate), fmt::format("{:.3f}", value), number(seconds), most});
    add_point(report.plot, 1e-6 * machine.network.wan_rate, {value});
  }
  return report;
}

std::string name_of(const Problem& p) {
  const std::string n = fmt::format("N = {:.4g}^3", std::cbrt(p.particles));
  if (p.method == Method::kTreePm) return fmt::format("{}, M = {:.4g}^3", n, std::cbrt(p.cells));
  return fmt::format("{}, {}{}", n, p.method == Method::kTree ? "tree" : "direct",
                     p.block_steps ? ", block steps" : "");
}

// A quantity as a function of the number of sites: its name, column head and value.
struct OverSites {
  const char *name, *head;
  std::function<double(int)> value;
};
// One curve over sites 1, 2, ... with a column of processes.
Report over_sites(const OverSites& what, const Problem& p, const Machine& machine, int sites,
                  const std::function<double(int)>& processes) {
  Report report;
  report.table.heads = {"sites", "processes", what.head, "seconds a step", "most"};
  report.plot = {
      fmt::format("{}: {}", machine.name, name_of(p)), "sites", what.name, false, false, {{what.name, {}, {}}}};
  for (int s = 1; s <= sites; ++s) {
    const StepTime time = step_time(p, machine, s, processes(s));
    report.table.rows.push_back({std::to_string(s), number(processes(s)), fmt::format("{:.3f}", what.value(s)),
                                 number(time.whole()), time.largest()});
    add_point(report.plot, s, {what.value(s)});
  }
  return report;
}

const Accelerator& accelerator_of(const Machine& machine) {
  if (!machine.accelerator) {
    throw Error(fmt::format("'{}' says nothing of an accelerator", machine.name), "",
                "give a machine with [accelerator], such as configs/machines/fdps_reference.toml");
  }
  return *machine.accelerator;
}

Report fdps_scaling(const FdpsRun& given, const Machine& machine, bool weak) {
  Report report;
  report.table.heads = {"processes", "seconds a step", weak ? "efficiency" : "speedup",
                        "single",    "domains",        "trees made",
                        "gathered",  "neighbours"};
  report.plot = {machine.name + (weak ? ": weak scaling" : ": strong scaling"),
                 "processes",
                 "seconds a step",
                 true,
                 true,
                 {{"step", {}, {}}, {"one node", {}, {}}, {"gathered", {}, {}}, {"neighbours", {}, {}}}};
  double first = 0;
  for (double p = 1, done = 0; done < std::round(given.processes); p *= std::sqrt(10.0)) {
    FdpsRun run = given;
    run.processes = done = std::round(std::min(p, given.processes));
    if (!weak) run.particles = given.particles / run.processes;
    const FdpsStep step = fdps_step(run, accelerator_of(machine));
    if (first == 0) first = step.whole();
    report.table.rows.push_back({number(run.processes), number(step.whole()), number(first / step.whole()),
                                 number(step.single), number(step.domains), number(step.trees_made),
                                 number(step.gathered), number(step.neighbours)});
    add_point(report.plot, run.processes, {step.whole(), step.single, step.gathered, step.neighbours});
  }
  return report;
}

}  // namespace

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    std::size_t width = heads[i].size();
    for (const auto& row : rows) width = std::max(width, row[i].size());
    widths.push_back(width);
  }
  const auto line = [&](const std::vector<std::string>& words) {
    std::string one;
    for (std::size_t i = 0; i < words.size(); ++i)
      one += i == 0 ? fmt::format("{:<{}}", words[i], widths[i]) : fmt::format("  {:>{}}", words[i], widths[i]);
    one.erase(one.find_last_not_of(' ') + 1);
    one += '\n';
    return one;
  };
  std::string all = line(heads);
  for (const auto& row : rows) all += line(row);
  return all;
}

std::string Table::csv() const {
  const auto line = [](const std::vector<std::string>& words) {
    std::string one;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (i > 0) one += ',';
      one += cell(words[i]);
    }
    one += '\n';
    return one;
  };
  std::string all = line(heads);
  for (const auto& row : rows) all += line(row);
  return all;
}

Report table_report(const Problem& p, const Machine& machine, int sites, double processes) {
  Report report;
  report.table.heads = {"N^1/3",      "M^1/3", "processes", "sites", "comm local",
                        "comm total", "tree",  "PM",        "exec.", "most"};
  report.plot = {fmt::format("{}: {}, {:g} processes", machine.name, name_of(p), processes),
                 "sites",
                 "seconds a step",
                 false,
                 false,
                 {{"step", {}, {}}, {"communication", {}, {}}, {"tree", {}, {}}, {"within sites", {}, {}}}};
  for (int s = 1; s <= sites; ++s) {
    const StepTime t = step_time(p, machine, s, processes);
    report.table.rows.push_back({number(std::cbrt(p.particles)), p.cells > 0 ? number(std::cbrt(p.cells)) : "-",
                                 number(processes), std::to_string(s), fmt::format("{:.2f}", t.local()),
                                 fmt::format("{:.2f}", t.communication()), fmt::format("{:.2f}", t.force),
                                 fmt::format("{:.2f}", t.mesh), fmt::format("{:.2f}", t.whole()), t.largest()});
    add_point(report.plot, s, {t.whole(), t.communication(), t.force, t.local()});
  }
  report.notes = {"Seconds a step, with the columns of SUSHI's table 3 (eqs. 2-12)."};
  return report;
}

Report speedup_report(const Problem& p, const Machine& machine, int sites, double processes) {
  return over_sites({"speedup", "S", [&](int s) { return speedup(p, machine, s, processes); }}, p, machine, sites,
                    [=](int s) { return s * processes; });
}

Report efficiency_report(const Problem& p, const Machine& machine, int sites, double processes) {
  return over_sites({"efficiency", "E", [&](int s) { return efficiency(p, machine, s, processes); }}, p, machine, sites,
                    [=](int) { return processes; });
}

Report bandwidth_report(const Problem& p, const Machine& machine, int sites, double processes) {
  Report report = over_rates(fmt::format("{}: {}", machine.name, name_of(p)), sites, machine, [&](const Machine& m) {
    const StepTime time = step_time(p, m, sites, processes);
    return std::tuple{efficiency(p, m, sites, processes), time.whole(), time.largest()};
  });
  const double wanted = rate_for_efficiency(p, machine, sites, processes, 0.8);
  report.notes = {
      std::isfinite(wanted)
          ? fmt::format("E({}) = 0.8 takes {:.4g} MB/s.", sites, 1e-6 * wanted)
          : fmt::format("E({}) = 0.8 is out of reach at any rate: the round trips alone take too long.", sites)};
  return report;
}

Report predict_report(const Problem& p, const Machine& machine, int sites, double processes) {
  const StepTime t = step_time(p, machine, sites, processes);
  Report report;
  report.plot = table_report(p, machine, sites, processes).plot;
  const auto add = shares(report, t.whole());
  add("forces", t.force), add("mesh", t.mesh), add("within sites, latency", t.lan_latency);
  add("within sites, bytes", t.lan_volume), add("between sites, latency", t.wan_latency);
  add("between sites, bytes", t.wan_volume), add("step", t.whole());
  report.notes = {fmt::format("SUSHI's model: {} on {} ({} site{}, {:g} processes).", name_of(p), machine.name, sites,
                              sites > 1 ? "s" : "", processes),
                  fmt::format("Most of a step: {}.", t.largest()),
                  fmt::format("Efficiency over one site with all processes (eq. 14): {:.3f}.",
                              efficiency(p, machine, sites, processes)),
                  fmt::format("Memory by SUSHI's count: {:.4g} GB in all, {:.4g} GB a process.", 1e-9 * memory_bytes(p),
                              1e-9 * memory_bytes(p) / processes)};
  return report;
}

Report fdps_table_report(const FdpsRun& run, const Machine& machine) {
  const FdpsNode made = fdps_node(run, accelerator_of(machine), false);
  const FdpsNode kept = fdps_node(run, accelerator_of(machine), true);
  Report report;
  report.table.heads = {"phase", "new lists", "kept lists"};
  const auto add = [&](const char* what, double a, double b) {
    report.table.rows.push_back({what, number(a), number(b)});
  };
  add("root cell", made.root, kept.root);
  add("local tree", made.local_tree, kept.local_tree);
  add("moments of the local tree", made.local_moments, kept.local_moments);
  add("global tree", made.global_tree, kept.global_tree);
  add("moments of the global tree", made.global_moments, kept.global_moments);
  add("sources to the accelerator", made.send_all, kept.send_all);
  add("  force kernel", made.kernel, kept.kernel);
  add("  lists, targets, forces on the bus", made.device_link, kept.device_link);
  add("  lists and copies on the host", made.host, kept.host);
  add("forces back", made.take_forces, kept.take_forces);
  add("step", made.whole(), kept.whole());
  report.plot = {machine.name,
                 "particles that share a list",
                 "seconds a step",
                 true,
                 true,
                 {{"new lists", {}, {}}, {"kept lists", {}, {}}, {fmt::format("mean of {:g}", run.reuse), {}, {}}}};
  for (double group = 32; group < 9000; group *= std::sqrt(2.0)) {
    FdpsRun other = run;
    other.group = group;
    add_point(report.plot, group,
              {fdps_node(other, *machine.accelerator, false).whole(),
               fdps_node(other, *machine.accelerator, true).whole(), fdps_single(other, *machine.accelerator)});
  }
  report.notes = {"Seconds, one process; of the three indented lines the longest counts (eqs. 17 and 18).",
                  fmt::format("Mean of a step where lists live for {:g}: {:.4g} s.", run.reuse,
                              fdps_single(run, *machine.accelerator))};
  return report;
}

Report fdps_speedup_report(const FdpsRun& run, const Machine& machine) { return fdps_scaling(run, machine, false); }
Report fdps_efficiency_report(const FdpsRun& run, const Machine& machine) { return fdps_scaling(run, machine, true); }

Report fdps_bandwidth_report(const FdpsRun& run, const Machine& machine) {
  Report report;
  report.table.heads = {"factor", "host memory", "bus", "both"};
  report.plot = {machine.name,
                 "bandwidth over that of the machine",
                 "time over that of the machine",
                 true,
                 false,
                 {{"host memory", {}, {}}, {"bus", {}, {}}, {"both", {}, {}}}};
  const double whole = fdps_single(run, accelerator_of(machine));
  for (int i = -8; i <= 8; ++i) {
    const double factor = std::pow(10, i / 8.0);
    std::vector<std::string> row = {number(factor)};
    for (std::size_t k = 0; k < 3; ++k) {
      Accelerator other = *machine.accelerator;
      if (k != 1) other.host_rate *= factor;
      if (k != 0) other.transfer_rate *= factor;
      const double ratio = fdps_single(run, other) / whole;
      row.push_back(fmt::format("{:.3f}", ratio));
      report.plot.lines[k].x.push_back(factor), report.plot.lines[k].y.push_back(ratio);
    }
    report.table.rows.push_back(row);
  }
  report.notes = {"Time of a step over that of the machine as it is, where bandwidths are multiplied by the factor."};
  return report;
}

Report fdps_predict_report(const FdpsRun& run, const Machine& machine) {
  const FdpsStep step = fdps_step(run, accelerator_of(machine));
  Report report;
  const auto add = shares(report, step.whole());
  add("one node", step.single), add("domains", step.domains), add("trees for others", step.trees_made);
  add("cells of all", step.gathered), add("trees of neighbours", step.neighbours), add("step", step.whole());
  report.plot = fdps_table_report(run, machine).plot;
  report.notes = {fmt::format("{:.4g} particles a process, {:g} process{}, on {}.", run.particles, run.processes,
                              run.processes > 1 ? "es" : "", machine.name)};
  return report;
}

namespace {

std::string maki_name(const MakiRun& run, const Machine& machine) {
  return fmt::format("Maki, {}: N = {:.4g}^3{}", machine.name, std::cbrt(run.particles),
                     run.cells > 0 ? fmt::format(", M = {:.4g}^3", std::cbrt(run.cells)) : "");
}

MakiRun over(MakiRun run, int sites, double ranks) {
  run.sites = sites, run.ranks = ranks;
  return run;
}

std::string memory_note(const RankMemory& memory) {
  return fmt::format(
      "Memory of a rank: {:.4g} GB of a GPU and {:.4g} GB of its host, or {:.4g} GB without a GPU (as maki run "
      "--estimate).",
      1e-9 * memory.device, 1e-9 * memory.host, 1e-9 * memory.shared);
}

// Mean seconds of a step, relative to one site.
double maki_gain(const MakiRun& run, const Machine& machine, int sites, bool each) {
  const MakiRun one = over(run, 1, run.ranks), many = over(run, sites, each ? sites * run.ranks : run.ranks);
  return maki_step(one, machine).mean(one) / maki_step(many, machine).mean(many);
}

Report maki_over_sites(const MakiRun& run, const Machine& machine, bool each, const char* head) {
  Report report;
  report.table.heads = {"sites", "ranks", "rebuild", "kept", "mesh adds", "mean", "waited", head, "most"};
  report.plot = {maki_name(run, machine), "sites", head, false, false, {{head, {}, {}}}};
  for (int s = 1; s <= run.sites; ++s) {
    const MakiRun here = over(run, s, each ? s * run.ranks : run.ranks);
    const MakiStep t = maki_step(here, machine);
    const double waited = t.waited_made / run.rebuild_every + t.waited_kept * (1 - 1 / run.rebuild_every) +
                          (run.cells > 0 ? t.waited_mesh / run.long_every : 0);
    const double gain = maki_gain(run, machine, s, each);
    report.table.rows.push_back({std::to_string(s), number(here.ranks), number(t.rebuild_step()), number(t.kept_step()),
                                 number(t.long_part()), number(t.mean(here)), number(waited), number(gain),
                                 t.largest(here)});
    add_point(report.plot, s, {gain});
  }
  report.notes = {fmt::format("Seconds a step; the mean has new lists every {:g} steps and the mesh every {:g}.",
                              run.rebuild_every, run.long_every)};
  return report;
}

}  // namespace

Report maki_speedup_report(const MakiRun& run, const Machine& machine) {
  return maki_over_sites(run, machine, true, "S");
}
Report maki_efficiency_report(const MakiRun& run, const Machine& machine) {
  return maki_over_sites(run, machine, false, "E");
}

Report maki_bandwidth_report(const MakiRun& run, const Machine& machine) {
  return over_rates(maki_name(run, machine), run.sites, machine, [&](const Machine& m) {
    const MakiStep step = maki_step(run, m);
    return std::tuple{maki_gain(run, m, run.sites, false), step.mean(run), step.largest(run)};
  });
}

Report maki_predict_report(const MakiRun& run, const Machine& machine) {
  const MakiStep t = maki_step(run, machine);
  Report report;
  report.table.heads = {"part", "seconds", "in"};
  const auto add = [&](const char* what, double seconds, const char* in) {
    if (seconds > 0) report.table.rows.push_back({what, number(seconds), in});
  };
  add("forces by lists", t.evaluate, "every step"), add("new trees and lists", t.made, "a rebuild");
  add("sweeps and repairs", t.kept, "a step with kept lists"), add("mesh", t.mesh, "a long step");
  add("coding for other sites", t.code, "a long step"), add("transposes", t.transpose, "a long step");
  add("waited", t.waited_made, "a rebuild"), add("waited", t.waited_kept, "a step with kept lists");
  add("waited", t.waited_mesh, "a long step"), add("rebuild", t.rebuild_step(), "without the mesh");
  add("step with kept lists", t.kept_step(), "without the mesh"), add("what the mesh adds", t.long_part(), "");
  add("mean", t.mean(run),
      fmt::format("rebuilds every {:g}, mesh every {:g}", run.rebuild_every, run.long_every).c_str());
  report.plot = maki_efficiency_report(run, machine).plot;
  report.notes = {fmt::format("{} ({:g} rank{}, {} site{}).", maki_name(run, machine), run.ranks,
                              run.ranks > 1 ? "s" : "", run.sites, run.sites > 1 ? "s" : ""),
                  fmt::format("Constants: {}.", machine.source), fmt::format("Most of the mean: {}.", t.largest(run))};
  if (run.memory.device > 0) report.notes.push_back(memory_note(run.memory));
  if (run.sites > 1) {
    report.notes.push_back(
        fmt::format("Between sites: {:.4g} MB of trees a step, {:.4g} MB of the mesh where it is used.",
                    1e-6 * maki_tree_bytes(run), 1e-6 * maki_mesh_bytes(run)));
  }
  return report;
}

}  // namespace maki::model
