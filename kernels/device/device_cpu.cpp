#include <omp.h>
#include <unistd.h>

#include <fstream>

#include "kernels/device/device.hpp"
#include "kernels/device/instruction_set.hpp"
#include "kernels/error.hpp"

namespace maki {
namespace {

// The value of the first "name : value" line of /proc/cpuinfo with this name.
std::string processor_line(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.compare(0, name.size(), name) == 0)
      if (const auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "";
}

}  // namespace

const char* backend_name() { return "cpu"; }

void select_device(int ordinal, int threads) {
  if (ordinal > 0)
    throw DeviceError("there is no GPU number " + std::to_string(ordinal), "this build of Maki runs on the CPU",
                      "leave run.device at 0, or build with 'make BACKEND=cuda'");
  if (threads > 0) omp_set_num_threads(threads);
}

DeviceInfo device_info() {
  DeviceInfo info;
  info.backend = backend_name();
  info.name = processor_line("model name");
  if (info.name.empty()) info.name = "CPU";
  info.instruction_set = name_of(instruction_set());
  info.units = thread_count();
  const std::string mhz = processor_line("cpu MHz");
  if (!mhz.empty()) info.clock_ghz = std::stod(mhz) * 1e-3;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  info.memory_total = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * page;
  info.memory_free = host_memory_available();
  if (info.memory_free == 0) info.memory_free = static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES)) * page;
  return info;
}

int device_count() { return 1; }

std::string device_address() { return ""; }

int unit_count() { return thread_count(); }

int thread_count() { return omp_get_max_threads(); }

void begin_phase_range(const char*) {}
void end_phase_range() {}

}  // namespace maki
