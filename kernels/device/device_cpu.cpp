#include "kernels/device/device.hpp"

#include <omp.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <utility>
#include <vector>

#include "kernels/device/instruction_set.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/device/stream.hpp"
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

bool device_was_used() { return false; }

DeviceTurn::DeviceTurn() = default;
DeviceTurn::~DeviceTurn() = default;

int device_count() { return 1; }

std::vector<std::string> device_addresses() { return {}; }
std::string device_address() { return ""; }

int unit_count() { return thread_count(); }

int thread_count() { return omp_get_max_threads(); }

void begin_phase_range(const char*) {}
void end_phase_range() {}

Stream::Stream(StreamPriority) {}
Stream::~Stream() = default;
void Stream::synchronize() const {}
void set_stream_waiter(StreamWaiter) {}  // nothing is ever queued
void Stream::wait_for(const Stream&) const {}

StreamMark::StreamMark() = default;
StreamMark::~StreamMark() = default;
StreamMark::StreamMark(StreamMark&&) noexcept = default;
StreamMark& StreamMark::operator=(StreamMark&&) noexcept = default;
void StreamMark::set(const Stream&) {}
bool StreamMark::reached() const { return true; }
void StreamMark::hold_back(const Stream&) const {}

struct StreamClock::Marks {
  std::vector<std::chrono::steady_clock::time_point> times;
  std::size_t most = 0;
};

StreamClock::StreamClock() : marks_(std::make_unique<Marks>()) {}
StreamClock::~StreamClock() = default;

std::size_t StreamClock::mark(const Stream&) noexcept {
  marks_->times.push_back(std::chrono::steady_clock::now());
  if (marks_->times.size() > marks_->most) marks_->most = marks_->times.size();
  return marks_->times.size() - 1;
}

double StreamClock::seconds(std::size_t from, std::size_t to) const {
  return std::chrono::duration<double>(marks_->times[to] - marks_->times[from]).count();
}

void StreamClock::clear() noexcept { marks_->times.clear(); }
std::size_t StreamClock::made() const { return (marks_->most + kChunk - 1) / kChunk * kChunk; }

namespace {

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

void WorkClock::begin(const Stream&) { begun_ = processor_seconds(); }
void WorkClock::end(const Stream&) { seconds_ += (processor_seconds() - begun_) / omp_get_max_threads(); }
double WorkClock::take() { return std::exchange(seconds_, 0.0); }

}  // namespace maki
