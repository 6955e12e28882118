#include "tests/gpu_model/interpreter/counts.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/gpu_model/report.hpp"
#include "tests/gpu_model/runtime/counters.hpp"

namespace gpu_model {
namespace {

// An H100 SXM: multiprocessors, clock, and what each of them begins in a cycle (in warp instructions).
constexpr double kUnits = 132, kClock = 1.755e9, kIssue = 4, kFloat = 4, kDouble = 2, kInteger = 2, kSpecial = 0.5,
                 kConvert = 0.5, kShared = 1, kAccess = 1;
constexpr double kMemory = 3.35e12;       // bytes a second
constexpr double kAtomics = 2.4e12 / 32;  // turns a second, all partitions of the L2 together
constexpr double kLaunch = 2e-6;          // seconds that a launch takes at least

std::uint64_t of(const Counts& c, Class k) { return c.instructions[static_cast<std::size_t>(k)]; }

const int at_end = (at_program_end([] {
                      const char* file = std::getenv("MAKI_GPU_MODEL_COUNTS");
                      if (!file || !*file) return;
                      std::FILE* to = std::string(file) == "-" ? stderr : std::fopen(file, "w");
                      if (!to) return;
                      std::fputs(table(counts()).c_str(), to);
                      if (to != stderr) std::fclose(to);
                    }),
                    0);

}  // namespace

std::vector<Counts> counts() {
  std::vector<Counts> all;
  for (const Kernel* k : all_kernels()) {
    Counts c;
    c.kernel = k->name;
    c.launches = k->launches;
    for (std::size_t n = 0; n < k->code.size(); ++n) {
      const Class kind = k->code[n].kind;
      c.instructions[static_cast<std::size_t>(kind)] += k->times[n];
      c.all += k->times[n];
      c.lanes += k->lanes[n];
      if (kind == Class::kGlobal) c.sectors += k->transactions[n];
      if (kind == Class::kShared) c.wavefronts += k->transactions[n];
      if (kind == Class::kAtomic) c.atomic_turns += k->transactions[n];
    }
    // Of several devices, and of template instances that share a name: one line.
    const auto known = std::find_if(all.begin(), all.end(), [&](const Counts& o) { return o.kernel == c.kernel; });
    if (known == all.end()) {
      all.push_back(std::move(c));
      continue;
    }
    known->launches += c.launches, known->all += c.all, known->lanes += c.lanes;
    known->sectors += c.sectors, known->wavefronts += c.wavefronts, known->atomic_turns += c.atomic_turns;
    for (std::size_t n = 0; n < c.instructions.size(); ++n) known->instructions[n] += c.instructions[n];
  }
  return all;
}

LeastTime least_time(const Counts& c) {
  const double machine = kUnits * kClock;
  const double integers = static_cast<double>(of(c, Class::kInteger));
  const double accesses = static_cast<double>(of(c, Class::kGlobal) + of(c, Class::kLocal) + of(c, Class::kAtomic));
  const LeastTime bounds[] = {
      {static_cast<double>(c.all) / kIssue / machine, "issue"},
      {static_cast<double>(of(c, Class::kFloat)) / kFloat / machine, "fp32"},
      {static_cast<double>(of(c, Class::kDouble)) / kDouble / machine, "fp64"},
      {integers / kInteger / machine, "integers"},
      {static_cast<double>(of(c, Class::kSpecial)) / kSpecial / machine, "special functions"},
      {static_cast<double>(of(c, Class::kConvert)) / kConvert / machine, "conversions"},
      {static_cast<double>(c.wavefronts) / kShared / machine, "shared memory"},
      {accesses / kAccess / machine, "load/store units"},
      {static_cast<double>(c.sectors) * 32 / kMemory, "memory"},
      {static_cast<double>(c.atomic_turns) / kAtomics, "atomics"},
      {static_cast<double>(c.launches) * kLaunch, "launches"},
  };
  return *std::max_element(std::begin(bounds), std::end(bounds),
                           [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
}

std::string table(const std::vector<Counts>& all) {
  std::vector<const Counts*> order;
  double sum = 0;
  std::uint64_t instructions = 0, launches = 0;
  for (const Counts& c : all) {
    if (!c.launches) continue;
    order.push_back(&c);
    sum += least_time(c).seconds;
    instructions += c.all;
    launches += c.launches;
  }
  std::sort(order.begin(), order.end(),
            [](const Counts* a, const Counts* b) { return least_time(*a).seconds > least_time(*b).seconds; });
  std::string text =
      "  launches  warp instr.  lanes   fp32   fp64    int  spec.   sectors wavefronts    atomics  least us  bound\n";
  char line[400];
  for (const Counts* c : order) {
    const LeastTime t = least_time(*c);
    const auto share = [&](Class k) {
      return 100.0 * static_cast<double>(of(*c, k)) / static_cast<double>(std::max<std::uint64_t>(c->all, 1));
    };
    std::snprintf(line, sizeof line,
                  "%10llu %12llu  %5.1f %5.0f%% %5.0f%% %5.0f%% %5.0f%% %9llu %10llu %10llu %9.1f  %s\n    %s\n",
                  static_cast<unsigned long long>(c->launches), static_cast<unsigned long long>(c->all),
                  static_cast<double>(c->lanes) / static_cast<double>(std::max<std::uint64_t>(c->all, 1)),
                  share(Class::kFloat), share(Class::kDouble), share(Class::kInteger), share(Class::kSpecial),
                  static_cast<unsigned long long>(c->sectors), static_cast<unsigned long long>(c->wavefronts),
                  static_cast<unsigned long long>(c->atomic_turns), 1e6 * t.seconds, t.bound, c->kernel.c_str());
    text += line;
  }
  const Counters& r = counters();
  std::snprintf(line, sizeof line, "%10llu %12llu  in all, at least %.1f us\n",
                static_cast<unsigned long long>(launches), static_cast<unsigned long long>(instructions), 1e6 * sum);
  text += line;
  std::snprintf(line, sizeof line,
                "host: %llu waits, %llu questions; bytes to the device %llu, to the host %llu, on the device %llu\n",
                static_cast<unsigned long long>(r.waits), static_cast<unsigned long long>(r.queries),
                static_cast<unsigned long long>(r.bytes_to_device), static_cast<unsigned long long>(r.bytes_to_host),
                static_cast<unsigned long long>(r.bytes_on_device));
  return text + line;
}

}  // namespace gpu_model
